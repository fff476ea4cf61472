-- Credentials of persons for the public listener. Of a token only its digest is kept; the id is the part of it that may be shown.
-- A credential that was revoked stays, so that the list can say so.
CREATE TABLE person_tokens (
  id           TEXT    PRIMARY KEY,
  user_id      TEXT    NOT NULL,
  name         TEXT    NOT NULL,   -- what it is called: a device, a place
  digest       TEXT    NOT NULL,   -- SHA-256 of the whole token, hex
  created_at   INTEGER NOT NULL,   -- epoch milliseconds, as the others
  expires_at   INTEGER,            -- NULL: never
  revoked_at   INTEGER,            -- NULL: it stands
  last_used_at INTEGER             -- to the minute
) STRICT, WITHOUT ROWID;

CREATE INDEX person_tokens_by_user ON person_tokens (user_id, created_at);
