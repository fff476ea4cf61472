-- The addresses at which calendar apps read the alarms of an owner. Of their secrets only digests are stored.
CREATE TABLE calendar_feeds (
  bucket     BIGINT   NOT NULL,
  owner      TEXT     COLLATE "C" NOT NULL,
  id         TEXT     COLLATE "C" NOT NULL,
  name       TEXT     NOT NULL,
  digest     TEXT     NOT NULL,
  -- Whether the messages of alarms are in it.
  messages   SMALLINT NOT NULL CHECK (messages IN (0, 1)),
  created_at BIGINT   NOT NULL,
  PRIMARY KEY (bucket, owner, id)
);

-- Tables that Citus distributes get a companion on the same servers.
DO $$
BEGIN
  SET LOCAL citus.multi_shard_modify_mode = 'sequential';
  IF to_regclass('pg_dist_partition') IS NULL THEN RETURN; END IF;
  IF EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'definitions'::regclass) THEN
    PERFORM create_distributed_table('calendar_feeds', 'bucket', colocate_with => 'definitions');
  END IF;
END $$;
