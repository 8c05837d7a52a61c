"""What `estimate` and `plan` say: tables, data, a picture."""
