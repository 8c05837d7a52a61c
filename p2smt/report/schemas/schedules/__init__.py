"""Files and outputs of the synthesis of schedules."""
