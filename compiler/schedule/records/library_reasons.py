"""What was decided of library calls: the layout of convolutions, what goes into their filters, the sizes of products.

The part of the closed list that is about them.
"""

from __future__ import annotations

from compiler.schedule.records.reason import Reason, listed

LIBRARY_CALLS: dict[str, Reason] = listed(
    Reason(
        "layout.channels_last",
        "layout",
        "The library's fast convolutions want all channels of a pixel side by side. Laid out so from the first to the "
        "last, the tensors between them are never rearranged; only what enters and leaves is, once.",
        "predicted {moved_us:.1f} us channels-last, {conversions_us:.1f} us of it in {conversions} conversions; "
        "{kept_us:.1f} us as eager lays them out",
    ),
    Reason(
        "layout.slower",
        "layout",
        "The convolutions could work channels-last, but the device model expects the conversions of what enters and "
        "leaves them to take longer than the library gains.",
        "predicted {moved_us:.1f} us channels-last, {conversions_us:.1f} us of it in {conversions} conversions; "
        "{kept_us:.1f} us as eager lays them out",
    ),
    Reason(
        "layout.library",
        "layout",
        "Nothing is known to be gained: on this device, or in this dtype, the library computes both layouts alike, or "
        "gives only one of them.",
        "nothing speaks for channels-last in this dtype on {device}",
    ),
    Reason(
        "layout.precision",
        "layout",
        "Channels-last would be faster, but the library rounds float32 to TF32 there, and computes in true float32 as "
        "eager lays the tensors out: results would be less exact than eager's.",
        "{kept_us:.1f} us predicted at an error of {kept_error:.0e} as eager lays them out; {moved_us:.1f} us at "
        "{moved_error:.0e} channels-last, where the library rounds to TF32, which the knob {knob} allows; errors are "
        "{errors}",
    ),
    Reason(
        "layout.rounded",
        "layout",
        "The library rounds float32 to TF32 channels-last, and computes in true float32 as eager lays the tensors out: "
        "results are less exact than eager's, as a knob allows.",
        "{moved_us:.1f} us predicted at an error of {moved_error:.0e} channels-last, where the library rounds to TF32, "
        "as the knob {knob} allows; {kept_us:.1f} us at {kept_error:.0e} as eager lays them out; errors are {errors}",
    ),
    Reason(
        "layout.gradients",
        "layout",
        "In training, float32 convolutions stay as eager lays them out: the library may round to TF32, and for "
        "gradients whether it does depends on the layout.",
        "in float32 on {device} the library rounds gradients to TF32 in one layout where it may not in the other",
    ),
    Reason(
        "layout.eager",
        "layout",
        "Eager has the results of these convolutions channels-last itself, or their channels or pixels are so few that "
        "both layouts are one.",
        "eager has them channels-last already",
    ),
    Reason(
        "layout.patches",
        "layout",
        "The windows of the convolution do not overlap, so it is a matrix product over patches of the image, which the "
        "device model expects to be faster, or a window is one pixel of an image that is channels-last.",
        "predicted {product_us:.1f} us as a product, {copy_us:.1f} us of it for patches; {kept_us:.1f} us as a "
        "convolution",
    ),
    Reason(
        "layout.depthwise",
        "layout",
        "Each filter of the convolution is for one channel, so it is a loop over windows: matrix units are no help for "
        "it, and what follows is computed in the same loop.",
        "a loop, not a call of the library",
    ),
    Reason(
        "layout.open_sizes",
        "layout",
        "Sizes differ from call to call, and which layout is faster depends on them, so tensors lie as eager lays them "
        "out.",
        "their sizes differ from call to call",
    ),
    Reason(
        "folding.filter",
        "folding",
        "With constant statistics a batch norm is a product and a sum for each channel: the product goes into the "
        "filter, and the sum, what is added after it and the ReLU into the library's call, which spares a pass over "
        "the result.",
        "predicted to save {saved_us:.1f} us, a pass over the result, for {filter_us:.1f} us to compute the filter",
    ),
    Reason(
        "folding.slower",
        "folding",
        "What follows the convolution could go into its filter and its call, but that would save no pass over the "
        "result, or less than computing the filter in each call takes.",
        "predicted to save {saved_us:.1f} us, for {filter_us:.1f} us to compute the filter",
    ),
    Reason(
        "folding.layout",
        "folding",
        "The library's kernels that go on from a convolution with a sum and a ReLU are channels-last, and this "
        "convolution works on contiguous tensors.",
        "the convolution stays contiguous",
    ),
    Reason(
        "padding.padded",
        "padding",
        "Tensor cores take numbers of two bytes eight at a time, and the library's fast kernels take only sizes that "
        "eight divides: with a border of zeros the product has such sizes, and nobody reads what comes of the border.",
        "{sizes} is computed as {padded}: predicted {kept_us:.1f} us as it is written, and {padded_us:.1f} us padded, "
        "with {copies_us:.1f} us for what is copied",
    ),
    Reason(
        "padding.apart",
        "padding",
        "A caller gets rows of a length that eight does not divide. Rows that are some rows apart start at whole "
        "vectors of sixteen bytes: the library's fast kernels compute each such part, and the result is not copied.",
        "{sizes} is computed by rows that lie apart: predicted {kept_us:.1f} us as it is written, and {padded_us:.1f} "
        "us so, with {copies_us:.1f} us for what is copied",
    ),
    Reason(
        "padding.slower",
        "padding",
        "The library would take less time for sizes that eight divides, but copying what has to be copied for that is "
        "expected to take longer than it gains.",
        "{sizes} is predicted to take {kept_us:.1f} us as it is written, and as {padded} {padded_us:.1f} us, with "
        "{copies_us:.1f} us for what is copied",
    ),
    Reason(
        "padding.open_sizes",
        "padding",
        "Sizes of the product differ from call to call, and whether a border of zeros pays depends on them, so it is "
        "computed as it is written.",
        "the sizes {sizes} differ from call to call",
    ),
)
