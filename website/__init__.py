"""The documentation site: copies docs/, adds reference pages, renders them, and checks the result.

`tox run -e docs` builds it. The modules in the order of their use:

- `staging` copies the pages of the repository and rewrites links that leave `docs/`; `notebooks` turns notebooks into
  pages.
- `reference` writes the reference pages from the code: commands, options, hooks, schemas and the Python interface.
- `gallery` runs the small experiments in `website/gallery` and adds their reports.
- `render` calls Zensical, which renders `zensical.toml`; its warnings are errors.
- `crossrefs` links names in code to their reference; `checks` finds broken links and lost content; `llms` writes texts
  for language models.
"""
