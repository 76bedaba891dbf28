"""Who is it, may they, and the audit of it. Every door (HTTP now, the gateway later) asks here and nowhere else.

`rights` is pure and decides; `service` finds out who asks; the rest are the small mechanisms those two need.
"""
