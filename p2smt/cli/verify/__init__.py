"""`p2smt verify`: plans (`verify_command`), programs and schedules."""
