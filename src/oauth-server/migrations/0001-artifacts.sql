-- Records of the library: sessions, interactions, codes, refresh tokens, grants and registered clients. The id of an
-- artifact may be a secret, such as a refresh token, so only its digest is stored. The payload is sealed.
CREATE TABLE artifacts (
  model       TEXT    NOT NULL,
  digest      TEXT    NOT NULL,
  sealed      TEXT    NOT NULL,
  grant_id    TEXT,
  -- The public id of a session.
  uid         TEXT,
  -- The digest of the code that the user types.
  user_code   TEXT,
  created_at  INTEGER NOT NULL,
  consumed_at INTEGER,
  expires_at  INTEGER NOT NULL,
  PRIMARY KEY (model, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifacts_by_grant ON artifacts (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX artifacts_by_uid ON artifacts (uid) WHERE uid IS NOT NULL;
CREATE INDEX artifacts_by_user_code ON artifacts (user_code) WHERE user_code IS NOT NULL;
CREATE INDEX artifacts_by_expiry ON artifacts (expires_at);

-- Connected clients: one row per grant. A token is valid while its row exists.
CREATE TABLE connections (
  grant_id      TEXT    PRIMARY KEY,
  user_id       TEXT    NOT NULL,
  client_id     TEXT    NOT NULL,
  -- The client's name, as the client gives it.
  client_name   TEXT,
  -- The host to which the browser was redirected; null for a device.
  redirect_host TEXT,
  scopes        TEXT    NOT NULL,
  resources     TEXT    NOT NULL,
  -- The credential of the sign-in: the connection ends when it is revoked. Null for a one-time code.
  credential    TEXT,
  created_at    INTEGER NOT NULL,
  -- Null until the first token.
  used_at       INTEGER,
  expires_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX connections_by_user ON connections (user_id);
