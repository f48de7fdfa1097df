"""The page as a browser meets it: `python -m bench.page CASE ...`, in Chromium, on a service of its own.

browser     a browser whose pages note, from inside, when something is first seen and which tasks were long
cases       sizes over the wire, the time to first figures, to decisions and a verdict, the same in a notebook, and a
            program of many layers
notebook    cells that run as JupyterLab runs them

Times are those of the browser's own clock. Nothing but 127.0.0.1 is asked.
"""
