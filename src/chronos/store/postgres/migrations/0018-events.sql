-- Alarms that wait for events, and the events.

CREATE TABLE events (
  bucket      BIGINT NOT NULL,
  owner       TEXT   COLLATE "C" NOT NULL,
  alarm_id    TEXT   COLLATE "C" NOT NULL,
  -- From 1 in the order of arrival; 0: no wake carries it.
  number      BIGINT NOT NULL,
  id          BYTEA  NOT NULL,
  received_at BIGINT NOT NULL,
  -- NULL: it was carried by a wake, or none carries it. The id stays, so that the event is known when it comes again.
  data        BYTEA,
  PRIMARY KEY (bucket, owner, alarm_id, id)
);

-- Tables that Citus distributes get a companion on the same servers.
DO $$
BEGIN
  SET LOCAL citus.multi_shard_modify_mode = 'sequential';
  IF to_regclass('pg_dist_partition') IS NULL THEN RETURN; END IF;
  IF EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'definitions'::regclass) THEN
    PERFORM create_distributed_table('events', 'bucket', colocate_with => 'definitions');
  END IF;
END $$;

CREATE INDEX events_waiting ON events (bucket ASC, owner, alarm_id, number) WHERE data IS NOT NULL;
-- Serves pruning, oldest first.
CREATE INDEX events_by_age ON events (bucket ASC, received_at ASC) WHERE data IS NULL;

ALTER TABLE definitions DROP CONSTRAINT definitions_kind;
ALTER TABLE definitions ADD CONSTRAINT definitions_kind CHECK (kind IN ('once', 'cron', 'rrule', 'event'));
