"""What of a profile is kept."""

from __future__ import annotations

from bench.profiles import readable

_PRINTED = """\
Mon Nov 30 16:06:01 2026    /somewhere/of/mine/scale.prof

         100 function calls in 3.569 seconds

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     2069    1.517    0.001    1.517    0.001 {built-in method builtins.compile}
     1013    0.034    0.000    2.070    0.002 /home/me/tree/operator/scalable_topics_operator/settings.py:52(read)
     7324    0.033    0.000    0.068    0.000 /opt/python/lib/python3.11/tokenize.py:433(_tokenize)
      251    0.097    0.000    2.197    0.009 /home/me/bench/producing.py:117(<listcomp>)
       12    0.001    0.000    0.001    0.000 /home/bench/tree/client/scalable_topics/sdk/sync.py:9(run)
       44    0.016    0.000    0.016    0.000 /home/me/.venv/lib/python3.11/site-packages/kopf/_core/queue.py:9(run)
"""


def test_paths_of_this_machine_are_left_out() -> None:
    text = readable(_PRINTED)
    assert text.startswith("100 function calls")
    assert "/home" not in text
    assert "/opt" not in text
    assert " scalable_topics_operator/settings.py:52(read)" in text
    assert " python3.11/tokenize.py:433(_tokenize)" in text
    assert " kopf/_core/queue.py:9(run)" in text
    assert " bench/producing.py:117(<listcomp>)" in text
    assert " scalable_topics/sdk/sync.py:9(run)" in text
