# One static library a module, built by glob from src/<module>, linked as modules.txt says.
# <module>_test holds every src/<module>/**/*_test.cpp.

function(reckon_add_module name deps)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/kernels/cuda/")
  if(RECKON_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/cuda/*.cu
         ${PROJECT_SOURCE_DIR}/src/${name}/cuda/*.cpp)
    list(FILTER cuda_sources EXCLUDE REGEX "_test\\.(cpp|cu)$")
    list(APPEND sources ${cuda_sources})
  endif()
  set_property(GLOBAL APPEND PROPERTY RECKON_MODULES ${name})
  if(sources)
    add_library(reckon_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(reckon_${name} PRIVATE
                           "$<$<COMPILE_LANGUAGE:CXX>:${RECKON_COMPILE_FLAGS}>")
    reckon_set_isa_flags("${sources}")
    reckon_hash_variant_sources(reckon_${name} "${sources}")
  else()
    add_library(reckon_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(reckon_${name} ${scope} ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_BINARY_DIR}/generated)
  foreach(dep IN LISTS deps)
    target_link_libraries(reckon_${name} ${scope} reckon_${dep})
  endforeach()
  target_link_libraries(reckon_${name} ${scope} ${RECKON_LIBS_${name}})
  if(RECKON_CUDA AND name STREQUAL "kernels")
    reckon_use_cuda(reckon_${name})
  endif()
endfunction()

# The CUDA runtime is linked statically and finds the driver when it is first called; cuBLASLt is
# loaded at run time. So one binary runs with and without a GPU.
function(reckon_use_cuda target)
  target_link_libraries(${target} PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  foreach(file backends variants)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/kernels/${file}.cpp
                 APPEND PROPERTY COMPILE_DEFINITIONS RECKON_CUDA=1)
  endforeach()
endfunction()

# x_avx2.cpp gets AVX2 + FMA + F16C, x_avx512.cpp also the AVX-512 sets that Isa::kAvx512 stands for
# (g++ 12 warns of the undefined registers in its own intrinsics for them), x_amx.cpp those of
# Isa::kAmx, and nothing else does; kernels are optimised in every preset.
function(reckon_set_isa_flags sources)
  foreach(source IN LISTS sources)
    if(source MATCHES "_avx2\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
    elseif(source MATCHES "_avx512\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c
                   -mavx512f -mavx512bw -mavx512vl -mavx512vnni -Wno-uninitialized)
    elseif(source MATCHES "_amx\\.cpp$")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c
                   -mavx512f -mavx512bw -mavx512vl -mavx512vnni -mavx512bf16
                   -mamx-tile -mamx-int8 -mamx-bf16 -Wno-uninitialized)
    endif()
    if(source MATCHES "_(avx512|amx)\\.cpp$" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -Wno-maybe-uninitialized)
    endif()
    if(source MATCHES "/kernels/(cpu|reference)/" AND NOT RECKON_SANITIZE)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O3)
    endif()
  endforeach()
endfunction()

# A kernel variant's source hash (design: file, the project headers it includes, compiler, flags)
# is computed at build time into generated/<path>.hash.h, which the file itself includes.
function(reckon_hash_variant_sources target sources)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h
       ${PROJECT_SOURCE_DIR}/src/*.cuh ${PROJECT_SOURCE_DIR}/src/*.cu)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} includes_hash REGEX "#include \".*\\.hash\\.h\"")
    if(NOT includes_hash)
      continue()
    endif()
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/src ${source})
    string(REGEX REPLACE "\\.(cpp|cu)$" ".hash.h" hash_header ${relative})
    set(output ${PROJECT_BINARY_DIR}/generated/${hash_header})
    get_property(flags SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    get_property(directory_flags DIRECTORY PROPERTY COMPILE_OPTIONS)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
    set(build_flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}
                    -std=c++${CMAKE_CXX_STANDARD} ${directory_flags} ${RECKON_COMPILE_FLAGS}
                    ${flags})
    set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
    if(source MATCHES "/kernels/cuda/")
      set(compiler "nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
      set(build_flags ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${build_type}})
    endif()
    add_custom_command(
      OUTPUT ${output}
      COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/source_hash.py
              --src ${PROJECT_SOURCE_DIR}/src --file ${relative} --output ${output}
              "--compiler=${compiler}"
              "--flags=${build_flags}"
      DEPENDS ${source} ${headers} ${PROJECT_SOURCE_DIR}/cmake/source_hash.py
      COMMENT "Hashing ${relative}"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endforeach()
endfunction()

# Reads "name: dep dep" lines, lowest module first.
function(reckon_add_modules table)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${table})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${table} lines REGEX "^[a-z]+:")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+): *(.*)$" _ "${line}")
    set(name ${CMAKE_MATCH_1})
    string(STRIP "${CMAKE_MATCH_2}" deps)
    string(REPLACE " " ";" deps "${deps}")
    reckon_add_module(${name} "${deps}")
  endforeach()
endfunction()

function(reckon_add_executable)
  set(main ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  if(EXISTS ${main})
    add_executable(reckon ${main})
    target_compile_options(reckon PRIVATE ${RECKON_COMPILE_FLAGS})
    target_link_libraries(reckon PRIVATE reckon_cli)
    # Where -m tiny is looked for (formats/model_path.h).
    install(TARGETS reckon RUNTIME DESTINATION bin)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/tiny DESTINATION share/reckon/models OPTIONAL)
  endif()
endfunction()

function(reckon_add_tests)
  include(GoogleTest)
  add_test(NAME cmake.source_hash
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/source_hash_test.py)
  add_test(NAME cmake.shapes
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/shapes_test.py)
  reckon_unpack_golden()
  # Where the tests' data and this project are, in one small object: a path in every test's command
  # line would keep a second clone from finding them in the compiler cache.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_data.cpp CONTENT
    "namespace reckon {\n\
extern const char* const kGoldenFolder;\nextern const char* const kProjectFolder;\n\
const char* const kGoldenFolder = \"@PROJECT_BINARY_DIR@/golden\";\n\
const char* const kProjectFolder = \"@PROJECT_SOURCE_DIR@\";\n}\n" @ONLY)
  add_library(reckon_test_data STATIC ${PROJECT_BINARY_DIR}/generated/test_data.cpp)
  get_property(modules GLOBAL PROPERTY RECKON_MODULES)
  foreach(module IN LISTS modules)
    file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*_test.cpp)
    if(NOT RECKON_CUDA)
      list(FILTER tests EXCLUDE REGEX "/kernels/cuda/")
    endif()
    if(tests)
      add_executable(${module}_test ${tests})
      target_compile_options(${module}_test PRIVATE ${RECKON_COMPILE_FLAGS})
      target_link_libraries(${module}_test PRIVATE reckon_${module} reckon_test_data
                            GTest::gtest_main GTest::gmock)
      if(RECKON_CUDA AND module STREQUAL "kernels")
        target_include_directories(${module}_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
      endif()
      foreach(test IN LISTS tests)
        file(STRINGS ${test} runs_reckon REGEX RECKON_BINARY_DIR)
        if(runs_reckon)
          set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS
            RECKON_BINARY_DIR="${PROJECT_BINARY_DIR}")
        endif()
        if(runs_reckon AND TARGET reckon)
          add_dependencies(${module}_test reckon)
        endif()
      endforeach()
      gtest_discover_tests(${module}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX ${module}.
                           PROPERTIES TIMEOUT 300)
    endif()
  endforeach()
endfunction()

# base/build_info.cpp knows the commit: a header that is refreshed on every build, rewritten only
# when it changed.
function(reckon_add_build_info)
  set(header ${PROJECT_BINARY_DIR}/generated/base/build_info_generated.h)
  add_custom_target(reckon_build_info
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/build_info.py
            --root ${PROJECT_SOURCE_DIR} --output ${header}
    BYPRODUCTS ${header}
    COMMENT "Reading the commit"
    VERBATIM)
  add_dependencies(reckon_base reckon_build_info)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/build_info.cpp
    APPEND PROPERTY COMPILE_DEFINITIONS RECKON_VERSION="${PROJECT_VERSION}"
    RECKON_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endfunction()

# Files as a header of a module that cmake/SCRIPT.py writes, so that a copied program has them, too.
function(reckon_add_generated module script header)
  set(writer ${PROJECT_SOURCE_DIR}/cmake/${script}.py)
  set(output ${PROJECT_BINARY_DIR}/generated/${module}/${header})
  add_custom_command(
    OUTPUT ${output}
    COMMAND Python3::Interpreter ${writer} --output ${output} ${ARGN}
    DEPENDS ${writer} ${PROJECT_SOURCE_DIR}/cmake/generated.py ${ARGN}
    COMMENT "Writing ${header}"
    VERBATIM)
  target_sources(reckon_${module} PRIVATE ${output})
endfunction()

# models/shapes/*.yaml as a header of formats.
function(reckon_add_shapes)
  file(GLOB shapes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/shapes/*.yaml)
  reckon_add_generated(formats shapes shapes_generated.h ${shapes})
endfunction()

# The shipped tile rules, rules/BACKEND-*.yaml, as a header of kernels.
function(reckon_add_tile_rules)
  file(GLOB rules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rules/cpu-*.yaml
       ${PROJECT_SOURCE_DIR}/rules/cuda-*.yaml)
  reckon_add_generated(kernels tile_rules tile_rules_generated.h ${rules})
endfunction()

# bench/measure_study.cpp, which needs nothing but measure, and leave_out.cpp; one program a bench/*_bench.cpp, where
# Google Benchmark is installed; and those of bench/cuda, where the build has CUDA. Not part of the
# default build: ask for one by name (kernels_bench links module kernels).
function(reckon_add_benchmarks)
  add_executable(measure_study EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/measure_study.cpp)
  target_compile_options(measure_study PRIVATE ${RECKON_COMPILE_FLAGS})
  target_link_libraries(measure_study PRIVATE reckon_measure)
  add_executable(leave_out EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/leave_out.cpp)
  target_compile_options(leave_out PRIVATE ${RECKON_COMPILE_FLAGS})
  target_link_libraries(leave_out PRIVATE reckon_ledger reckon_measure)
  if(RECKON_CUDA)
    foreach(name gemv_bench ops_bench matmul_fast_bench)
      add_executable(${name} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/cuda/${name}.cu)
      target_link_libraries(${name} PRIVATE reckon_kernels)
    endforeach()
    target_sources(gemv_bench PRIVATE ${PROJECT_SOURCE_DIR}/bench/cuda/gemv_check.cu)
    if(TARGET CUDA::cupti)
      add_library(timeline MODULE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/cuda/timeline.cpp)
      target_compile_options(timeline PRIVATE ${RECKON_COMPILE_FLAGS})
      target_link_libraries(timeline PRIVATE CUDA::cupti)
    endif()
  endif()
  if(NOT benchmark_FOUND)
    return()
  endif()
  file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cpp)
  foreach(bench IN LISTS benches)
    get_filename_component(name ${bench} NAME_WE)
    string(REGEX REPLACE "_bench$" "" module ${name})
    add_executable(${name} EXCLUDE_FROM_ALL ${bench})
    target_compile_options(${name} PRIVATE ${RECKON_COMPILE_FLAGS})
    target_link_libraries(${name} PRIVATE reckon_${module} benchmark::benchmark)
  endforeach()
endfunction()

# fuzz_<target> from fuzz/<module>/<target>.cpp, linked with that module; fuzz_targets is all of them.
function(reckon_add_fuzz_targets)
  if(NOT RECKON_FUZZ)
    return()
  endif()
  add_custom_target(fuzz_targets)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*/*.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(target ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(module ${folder} NAME)
    add_executable(fuzz_${target} EXCLUDE_FROM_ALL ${source} ${PROJECT_SOURCE_DIR}/fuzz/entry.cpp)
    target_include_directories(fuzz_${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(fuzz_${target} PRIVATE ${RECKON_COMPILE_FLAGS})
    target_link_libraries(fuzz_${target} PRIVATE reckon_${module})
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets fuzz_${target})
  endforeach()
endfunction()
