/** The alarms' rows: reading them whole, and writing no more than what changed. */
import type { DatabaseSync } from 'node:sqlite';
import type { Alarm } from '../../alarm/alarm.ts';
import { ALARM_COLUMNS } from '../columns.ts';
import { prepareInsert, prepareQuery, prepareUpdate, shapeOf } from './statements.ts';

const ALARM = shapeOf(ALARM_COLUMNS);

const TEXTS = ['wakeMessage', 'payload'] as const satisfies (keyof Alarm)[];
/** What every settled attempt moves. */
const PROGRESS = [
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies (keyof Alarm)[];
/** Apart from the progress, because `status` stands in two indexes. */
const STATUS = ['status'] as const satisfies (keyof Alarm)[];
/** What is given once and for all. */
const IDENTITY = ['id', 'owner', 'kind', 'idempotencyKey', 'createdAt'] as const satisfies (keyof Alarm)[];

const OTHERS: ReadonlySet<string> = new Set([...TEXTS, ...PROGRESS, ...STATUS, ...IDENTITY]);
/** What only an edit changes: all the rest. */
const DEFINITION = (Object.keys(ALARM_COLUMNS) as (keyof Alarm)[]).filter((member) => !OTHERS.has(member));

const BY_ID = 'owner = ? AND id = ?';

export function prepareAlarms(db: DatabaseSync) {
  const one = prepareQuery(
    db,
    `SELECT ${ALARM.columns} FROM alarms JOIN alarm_texts USING (seq) WHERE ${BY_ID}`,
    ALARM.read,
  );
  const known = prepareQuery(db, `SELECT 1 FROM alarms WHERE ${BY_ID}`, () => true);
  const insertRow = prepareInsert<Alarm>(db, 'alarms', ALARM_COLUMNS, [
    ...IDENTITY,
    ...STATUS,
    ...PROGRESS,
    ...DEFINITION,
  ]);
  const insertTexts = db.prepare(
    'INSERT INTO alarm_texts (seq, wake_message, payload) VALUES (last_insert_rowid(), ?, ?)',
  );
  const writing = (members: readonly (typeof PROGRESS | typeof STATUS | typeof DEFINITION)[number][]) =>
    prepareUpdate<Alarm>(db, 'alarms', ALARM_COLUMNS, members, BY_ID, ['owner', 'id']);
  const writeProgress = writing(PROGRESS);
  const writeStatus = writing([...STATUS, ...PROGRESS]);
  const writeDefinition = writing(DEFINITION);
  const writeTexts = prepareUpdate<Alarm>(
    db,
    'alarm_texts',
    ALARM_COLUMNS,
    TEXTS,
    `seq = (SELECT seq FROM alarms WHERE ${BY_ID})`,
    ['owner', 'id'],
  );

  return {
    find(owner: string, id: string): Alarm | undefined {
      return one.get(owner, id);
    },

    exists(owner: string, id: string): boolean {
      return known.get(owner, id) === true;
    },

    insert(alarm: Alarm): void {
      insertRow(alarm);
      insertTexts.run(alarm.wakeMessage, alarm.payload);
    },

    /**
     * Writes the groups of columns that hold one of `changed`; a status seldom changes without progress, so they go
     * together.
     */
    update(alarm: Alarm, changed: ReadonlySet<keyof Alarm>): void {
      const touches = (members: readonly (keyof Alarm)[]) => members.some((member) => changed.has(member));
      if (touches(STATUS)) writeStatus(alarm);
      else if (touches(PROGRESS)) writeProgress(alarm);
      if (touches(DEFINITION)) writeDefinition(alarm);
      if (touches(TEXTS)) writeTexts(alarm);
    },
  };
}
