"""Images: decoded once when they are read, stored once by their content.

`image` has what a sample refers to, `policy` what a dataset declares. `decode` reads picture files,
`dicom` frames, `slides` parts of whole-slide images, `rows` all of these as rows of a source.

Only the two names below are imported here: what decodes needs Pillow, pydicom or OpenSlide, and
is imported by the steps.
"""

from factory.data.images.image import Image as Image
from factory.data.images.policy import Images as Images
