/**
 * The `turn_steps` and `turn_calls` tables: the journal of turns. Synchronous; writes must run inside a transaction of
 * the connection's group commit.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { JournalledCall, JournalledStep } from '../loop/journal.ts';
import type { ToolAnswer } from '../tools/surface.ts';

/** Longer results are dropped and arguments cut when their turn has ended; until then the turn may need them again. */
const KEPT_CHARACTERS = 4096;

type Row = Record<string, SQLOutputValue>;

const NOT_KEPT: ToolAnswer['content'] = [{ type: 'text', text: '(the result was long and has not been kept)' }];

function answerOf(row: Row): { answer?: ToolAnswer } {
  if (row.finished_at === null) return {};
  const content = row.content === null ? NOT_KEPT : (JSON.parse(row.content as string) as ToolAnswer['content']);
  return { answer: { content, isError: row.is_error === 1 } };
}

function callOf(row: Row): JournalledCall {
  return {
    index: row.place as number,
    call: {
      id: row.call_id as string,
      name: row.name as string,
      input: row.input as string,
      ...(row.opaque === null ? {} : { opaque: JSON.parse(row.opaque as string) }),
    },
    ...answerOf(row),
  };
}

/** Makes the tables' operations over an open connection. */
export function stepTable(db: DatabaseSync) {
  const insertStep = db.prepare('INSERT INTO turn_steps (turn_id, step, said, left_out) VALUES (?, ?, ?, ?)');
  const insertCall = db.prepare(`
    INSERT INTO turn_calls (turn_id, step, place, call_id, opaque, name, input, begun_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const finishCall = db.prepare(`
    UPDATE turn_calls SET finished_at = ?, is_error = ?, content = ?
    WHERE turn_id = ? AND step = ? AND place = ?`);
  const steps = db.prepare('SELECT step, said, left_out FROM turn_steps WHERE turn_id = ? ORDER BY step');
  const calls = db.prepare('SELECT * FROM turn_calls WHERE turn_id = ? ORDER BY step, place');
  const dropLong = db.prepare('UPDATE turn_calls SET content = NULL WHERE turn_id = ?1 AND length(content) > ?2');
  const cutLong = db.prepare(`
    UPDATE turn_calls SET input = substr(input, 1, ?2) WHERE turn_id = ?1 AND length(input) > ?2`);

  function finish(turnId: string, step: number, index: number, { content, isError }: ToolAnswer, now: number): void {
    finishCall.run(now, isError ? 1 : 0, JSON.stringify(content), turnId, step, index);
  }

  return {
    /** Stores a step; calls with an answer as finished, the others as begun. */
    insert(turnId: string, { step, text, omittedCalls, calls: stepCalls }: JournalledStep, now: number): void {
      insertStep.run(turnId, step, text, omittedCalls);
      for (const { index, call, answer } of stepCalls) {
        const opaque = call.opaque === undefined ? null : JSON.stringify(call.opaque);
        insertCall.run(turnId, step, index, call.id, opaque, call.name, call.input, now);
        if (answer) finish(turnId, step, index, answer, now);
      }
    },

    finish,

    /** The turn has ended: long texts of its journal are not needed any more. */
    shorten(turnId: string): void {
      dropLong.run(turnId, KEPT_CHARACTERS);
      cutLong.run(turnId, KEPT_CHARACTERS);
    },

    of(turnId: string): JournalledStep[] {
      const rows = steps.all(turnId) as Row[];
      if (rows.length === 0) return [];
      const byStep = Map.groupBy(calls.all(turnId) as Row[], (row) => row.step as number);
      return rows.map((row) => ({
        step: row.step as number,
        text: row.said as string,
        omittedCalls: row.left_out as number,
        calls: (byStep.get(row.step as number) ?? []).map(callOf),
      }));
    },
  };
}
