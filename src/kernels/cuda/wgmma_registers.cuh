// Operand lists of wgmma, which PTX wants spelt out: the names %0, %1, ... of the first operands of
// an asm statement, and d[0], d[1], ... as accumulators that stand for them. Macros only.
#pragma once

// clang-format off
#define RECKON_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define RECKON_NAMES_16 RECKON_NAMES_8 \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define RECKON_NAMES_32 RECKON_NAMES_16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23" \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define RECKON_NAMES_64 RECKON_NAMES_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39" \
  ", %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55" \
  ", %56, %57, %58, %59, %60, %61, %62, %63"
#define RECKON_NAMES_80 RECKON_NAMES_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71" \
  ", %72, %73, %74, %75, %76, %77, %78, %79"
#define RECKON_NAMES_96 RECKON_NAMES_80 \
  ", %80, %81, %82, %83, %84, %85, %86, %87" \
  ", %88, %89, %90, %91, %92, %93, %94, %95"
#define RECKON_NAMES_128 RECKON_NAMES_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103" \
  ", %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119" \
  ", %120, %121, %122, %123, %124, %125, %126, %127"

#define RECKON_FLOATS_FROM(d, i) \
  "+f"((d)[(i)]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), \
  "+f"((d)[(i) + 4]), "+f"((d)[(i) + 5]), "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])
#define RECKON_FLOATS_8(d) \
  RECKON_FLOATS_FROM(d, 0)
#define RECKON_FLOATS_16(d) \
  RECKON_FLOATS_8(d), RECKON_FLOATS_FROM(d, 8)
#define RECKON_FLOATS_32(d) \
  RECKON_FLOATS_16(d), RECKON_FLOATS_FROM(d, 16), RECKON_FLOATS_FROM(d, 24)
#define RECKON_FLOATS_64(d) \
  RECKON_FLOATS_32(d), RECKON_FLOATS_FROM(d, 32), RECKON_FLOATS_FROM(d, 40), \
  RECKON_FLOATS_FROM(d, 48), RECKON_FLOATS_FROM(d, 56)
#define RECKON_FLOATS_80(d) \
  RECKON_FLOATS_64(d), RECKON_FLOATS_FROM(d, 64), RECKON_FLOATS_FROM(d, 72)
#define RECKON_FLOATS_96(d) \
  RECKON_FLOATS_80(d), RECKON_FLOATS_FROM(d, 80), RECKON_FLOATS_FROM(d, 88)
#define RECKON_FLOATS_128(d) \
  RECKON_FLOATS_96(d), RECKON_FLOATS_FROM(d, 96), RECKON_FLOATS_FROM(d, 104), \
  RECKON_FLOATS_FROM(d, 112), RECKON_FLOATS_FROM(d, 120)
// clang-format on
