; Functions of libdevice that are one instruction each on float32, as Triton has them: with denormal numbers as zero.
; See triton_library.py.

target triple = "nvptx64-nvidia-cuda"

declare float @llvm.nvvm.rsqrt.approx.ftz.f(float)
declare float @llvm.nvvm.sqrt.approx.ftz.f(float)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
declare float @llvm.nvvm.div.approx.ftz.f(float, float)
declare float @llvm.rint.f32(float)

define float @__nv_rsqrtf(float %x) alwaysinline {
  %result = call float @llvm.nvvm.rsqrt.approx.ftz.f(float %x)
  ret float %result
}

define float @__nv_sqrtf(float %x) alwaysinline {
  %result = call float @llvm.nvvm.sqrt.approx.ftz.f(float %x)
  ret float %result
}

define float @__nv_exp2f(float %x) alwaysinline {
  %result = call float @llvm.nvvm.ex2.approx.ftz.f(float %x)
  ret float %result
}

define float @__nv_fast_fdividef(float %x, float %y) alwaysinline {
  %result = call float @llvm.nvvm.div.approx.ftz.f(float %x, float %y)
  ret float %result
}

define float @__nv_rintf(float %x) alwaysinline {
  %result = call float @llvm.rint.f32(float %x)
  ret float %result
}
