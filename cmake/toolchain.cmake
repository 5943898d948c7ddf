# Language level, warnings and the few global flags. Instruction-set flags are per file
# (see modules.cmake), never global.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(RECKON_SANITIZE "Build with AddressSanitizer and UndefinedBehaviourSanitizer" OFF)
option(RECKON_FUZZ "Build the fuzz targets (clang only)" OFF)

# Paths below the source root are cached relative to the build folder, so that a second clone finds
# what the first one compiled. Debug information names the folder that it was compiled in, so builds
# with -g leave that in the key.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_NOHASHDIR=1)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# -ffp-contract=off: a*b+c is an FMA only where a kernel says so, in every build.
set(RECKON_COMPILE_FLAGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                         -Werror -ffp-contract=off -fno-math-errno)
if(RECKON_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RECKON_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

option(RECKON_CUDA "Build the CUDA backend (needs nvcc)" OFF)
if(RECKON_CUDA)
  # Hopper's own instructions need the target with an a; everything else from 8.0 on runs the other
  # kernels, compiled from PTX by the driver where it is newer.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(RECKON_CUDA_TARGETS "-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=[sm_80,compute_80]"
      CACHE STRING "nvcc's targets")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(CCACHE_PROGRAM)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know nvcc's flag for C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} ${RECKON_CUDA_TARGETS} --expt-relaxed-constexpr -Xcompiler=-ffp-contract=off")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  find_package(CUDAToolkit REQUIRED)
endif()
