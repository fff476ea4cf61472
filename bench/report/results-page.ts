/** Renders `bench/results.md`: all tables, the systems, the methods and the machine. Pure. */
import { WORKLOADS } from '../plan.ts';
import type { Report } from '../results.ts';
import { count } from './figures.ts';
import { renderMarkdown } from './table.ts';
import { tablesOf } from './tables.ts';

const INTRODUCTION = `# Results of the benchmarks

Alarms compared with three schedulers, tool calls compared with the bare MCP library. \`npm run bench\` generates this page from
[results.json](results.json). [Benchmarks](../docs/benchmarks.md) has the targets, [findings](findings.md) the explanations. The
workloads \`endurance\` and \`resident\` take 70 minutes and run only when \`--only\` names them.`;

function method({ plan }: Report): string {
  const {
    rounds,
    lateness,
    burst,
    creates,
    growth,
    queue,
    endurance,
    resident,
    tools,
    boot,
    memory,
    receipts,
    chronometric,
    proxy,
    consoles,
    conditions,
  } = plan;
  return `## Method

- **One machine, one clock.** The sink is a separate process. It reads each body, answers 202 and notes the time. Lateness is that time
  minus the due time. Database server, system under test, sink and load generator share the cores of the machine.
- **The same work for all.** A fire is one POST of the same body (about 630 bytes) to the same sink. The peers use the HTTP client of
  Reveille (undici, 256 connections, keep-alive). Only Reveille signs each wake, keeps a ledger and limits a user to four parallel wakes.
- **The same database for all** systems on PostgreSQL: one server with default settings, a fresh database per run, vacuumed, analysed and
  checkpointed before the window. SQLite runs with \`synchronous=FULL\`, Redis with \`appendfsync always\`.
- **Jobs are stored beforehand.** The processes are started afterwards and fire at the same rate for ${lateness.warmupSeconds} s before the window.
- **${rounds === 1 ? 'One round' : `Medians of ${rounds} rounds`}.** Another system is first in each round. A missing fire counts as later than all others.
- **Lateness:** ${lateness.seconds} s at each rate, due times evenly spread, 200 users, 10 s of waiting after the window.
- **Burst:** ${count(burst.count)} due within ${burst.seconds} s, from the first due time to the last arrival. The raw POST rate is that of client and sink
  with 256 parallel POSTs and no scheduler.
- **Creates:** ${creates.seconds} s; each client keeps its connection and token and waits for each answer. A bare insert is one row of the same width in
  its own transaction, by as many clients, through the same driver.
- **Growth:** ${growth.seconds} s windows at ${growth.rate} fires/s while other alarms wait for a day or more, a thousand per user. Claim time is that of one
  \`claim\` of 16 through the store, in its own process.
- **Queue:** the scenarios of [PgQue](https://github.com/NikolayS/PgQue) ("queues under blocked xmin horizon"), with stored jobs and shorter windows.
  First ${count(queue.rate)} jobs per second for ${queue.seconds} s. Then the same during an open transaction of isolation level REPEATABLE READ. Then the
  same with a store that is killed (\`kill -9\`) after a third of the time and started a second later. A process that ends because of it is restarted within two seconds. One round.
- **Lasting load:** ${count(endurance.rate)} creates per second over HTTP by 32 clients, each due ten seconds later; ledger and ended alarms are deleted
  after one window. And ${count(resident.rate)} per second without deletion, for the memory after ten minutes.
- **Cold start:** from the start of the process until it is usable, after one start that filled the compile cache of Node.
- **Tool calls:** ${count(tools.calls)} calls of each kind per round through each way, one at a time, in random order, in one process. Each way has its own
  process of the official files server. The short call lists folders; the long one reads a file. The bare client has default settings
  and checks no result schema. All ways share one garbage collector, so a p99 says little about one way.
- **Boot:** ${boot.starts} starts, each in a new process, from loading the code to the last list of tools, with official files servers and a filled
  compile cache. Neo's time includes modules that a running daemon has loaded already.
- **Memory:** invented memories of about 15 words with the frequencies of speech (Zipf), in one file; ${count(memory.queries)} queries of each kind, without
  embeddings.
- **Receipts:** ${receipts.seconds} s windows on one thread unless the row says otherwise; the receipt of an approved transfer. A check includes strict
  parsing, hashes, signatures and rules.
- **Chronometric:** ${count(chronometric.starts)} starts of each server, in turn, to the answer of \`get_time_context\`. Then ${count(chronometric.calls)} calls of each tool per round.
  There is no profile and no consent.
- **Public listener:** a daemon that answers 4 KiB at once. It is called without a proxy, through a minimal reverse proxy with the same HTTP
  client, and through the router with a user token. ${count(proxy.calls)} requests run one at a time, then 32 in parallel for ${proxy.seconds} s. Then ${proxy.wakes} requests to a sleeping machine,
  compared with starts of the same program.
- **Consoles:** ${count(consoles.count)} fires due within ${consoles.seconds} s, with no open console and with ${count(consoles.consoles)} of different users. Each holds an event stream and
  reads its list again after a change, one read at a time.${conditionsMethod(conditions)}`;
}

/** Reports from before this workload have no plan for it. */
function conditionsMethod(conditions: Report['plan']['conditions'] | undefined): string {
  if (conditions === undefined) return '';
  return `
- **Conditions:** ${count(conditions.events)} signed webhooks within ${conditions.seconds} s for 20 users and for one alarm, with a wake each, and collected for one alarm; ${count(conditions.checks)} alarms within ${conditions.checkSeconds} s
  whose check reads an address and says no.`;
}

function machineSection({ machine, versions, postgres }: Report): string {
  const settings = Object.entries(postgres).map(([name, value]) => `\`${name}=${value}\``);
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `## Machine

- ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGigabytes.toFixed(0)} GB of memory, ${machine.os}
- ${count(machine.syncsPerSecond)} appends of 4 KiB per second, each followed by \`fdatasync\`, on the disk that holds the databases
- ${named.join(', ')}${settings.length === 0 ? '' : `\n- PostgreSQL: ${settings.join(', ')}`}`;
}

function systemsSection({ systems, unavailable }: Report): string[] {
  const lines = systems.map(({ title, settings }) => `- **${title}.** ${settings}`);
  const missing = unavailable.map(({ title, reason }) => `- **${title}** could not be measured: ${reason}`);
  return lines.length + missing.length === 0 ? [] : [['## Systems', '', ...lines, ...missing].join('\n')];
}

function resultsSection({ results }: Report): string {
  const sections = tablesOf(results).map((table) => [`### ${table.title}`, '', ...renderMarkdown(table)].join('\n'));
  return ['## Results', ...sections].join('\n\n');
}

/** One line for all workloads that were measured on one day with the same code and processor. */
function dates({ measured }: Report): string {
  const lines = new Map<string, string[]>();
  for (const name of WORKLOADS) {
    const each = measured[name];
    if (!each) continue;
    const line = `${each.at.slice(0, 10)}, commit ${each.commit}, ${each.cpu}`;
    lines.set(line, [...(lines.get(line) ?? []), name]);
  }
  const rows = [...lines].map(([line, names]) => `- ${line}: ${names.join(', ')}`);
  const remark = rows.length > 1 ? '\n\nCompare only figures of one line with each other.' : '';
  return `Measured:\n\n${rows.join('\n')}${remark}`;
}

export function renderResults(report: Report): string {
  const parts = [
    INTRODUCTION,
    dates(report),
    resultsSection(report),
    ...systemsSection(report),
    method(report),
    machineSection(report),
  ];
  return `${parts.join('\n\n')}\n`;
}
