"""kopf handlers, the work queue and one controller a kind (DESIGN §3)."""
