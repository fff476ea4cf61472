/** Counts the tests that missing tools skipped, and reports them before the summary of a run. */
import type { TestEvent } from 'node:test/reporters';
import { installCommand, type Tool, toolsIn } from './tools.ts';

/** The skipped tests of one tool; a skipped `describe` counts as one group. */
type Skipped = { tests: number; groups: number };

const counted = (count: number, noun: string) => (count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}`]);

/** One line for a missing tool: what it skipped, and the command that installs it. */
const lineOf = (tool: Tool, { tests, groups }: Skipped) =>
  `${tool} is missing: skipped ${[...counted(tests, 'test'), ...counted(groups, 'group')].join(' and ')}; ${installCommand(tool)}`;

/** Passes the events of a run on, with one diagnostic line for each missing tool ahead of Node's summary. */
export async function* missingTools(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const skipped = new Map<Tool, Skipped>();
  let isReported = false;
  for await (const event of events) {
    if (event.type === 'test:pass' && typeof event.data.skip === 'string')
      for (const tool of toolsIn(event.data.skip)) {
        const count = skipped.get(tool) ?? { tests: 0, groups: 0 };
        count[event.data.details.type === 'suite' ? 'groups' : 'tests']++;
        skipped.set(tool, count);
      }
    // The first line of the summary.
    if (!isReported && event.type === 'test:diagnostic' && event.data.nesting === 0 && isSummary(event.data)) {
      isReported = true;
      for (const [tool, count] of [...skipped].toSorted(([one], [other]) => one.localeCompare(other)))
        yield { type: 'test:diagnostic', data: { ...event.data, message: lineOf(tool, count), level: 'warn' } };
    }
    yield event;
  }
}

const isSummary = ({ message, file }: { message: string; file?: string | undefined }) =>
  file === undefined && /^tests \d+$/.test(message);
