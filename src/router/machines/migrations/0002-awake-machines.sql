-- Machines that run somewhere else (a container, a virtual machine) and that this router woke or found awake. They outlive the
-- router, so that a row must tell the next one whom to put to sleep, also when the machine's specification has changed since.
CREATE TABLE awake_machines (
  user_id  TEXT NOT NULL,
  provider TEXT NOT NULL,
  spec     TEXT NOT NULL,     -- JSON, as it was when the machine was woken
  PRIMARY KEY (user_id, provider)
) STRICT, WITHOUT ROWID;
