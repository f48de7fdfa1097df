"""The lessons that come with the product: `docs/lessons/*.md`, whose README says how one is written.

models    what a lesson consists of, as the API gives it
reading   from Markdown to that, with a sentence, file and line for what is wrong
recorded  figures of a lesson's programs that were measured on a GPU and kept beside it
"""
