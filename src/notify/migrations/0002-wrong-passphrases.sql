-- Passphrases that were tried at a link and did not open the key, by question, until its links have expired.
CREATE TABLE wrong_passphrases (
  question   TEXT PRIMARY KEY,
  tries      INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
