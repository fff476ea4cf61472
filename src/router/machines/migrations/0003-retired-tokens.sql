-- Tokens of machines that have just been replaced: for some minutes, receipts that were signed with them are still believed.
CREATE TABLE retired_tokens (
  user_id TEXT    PRIMARY KEY,
  token   TEXT    NOT NULL,
  until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
