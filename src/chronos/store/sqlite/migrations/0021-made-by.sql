-- The credential that made an alarm or a feed: 'client <id>' or 'key <fingerprint>'. NULL: the operator's token, or unknown.
ALTER TABLE definitions ADD COLUMN made_by TEXT;
UPDATE definitions SET made_by = 'client ' || json_extract(substr(set_by, 2), '$[0]') WHERE set_by >= char(1) AND set_by < char(2);
ALTER TABLE calendar_feeds ADD COLUMN made_by TEXT;
