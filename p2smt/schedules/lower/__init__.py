"""Programs and plans as schedules: rows, then messages, then thread blocks."""
