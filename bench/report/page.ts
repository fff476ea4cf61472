/** `docs/internals/benchmarks.md`: written by the program, figures, verdicts and all. Pure. */
import { WORKLOADS } from '../plan.ts';
import type { Report } from '../results.ts';
import { verdictsOf } from '../verdicts.ts';
import { count } from './figures.ts';
import { renderMarkdown } from './table.ts';
import { tablesOf, verdictsTable } from './tables.ts';

const INTRODUCTION = `# Benchmarks

What Reveille does on one machine: its alarms beside three schedulers that people would otherwise put in their place, its agent's tools
beside the bare MCP library. Everything here comes from this command, from a checkout after \`npm ci\`:

\`\`\`
npm run bench                                  # about 80 minutes; writes this page and benchmarks.json
npm run bench -- --quick                       # about 5 minutes; prints, writes nothing
npm run bench -- --only endurance,resident     # 70 minutes of lasting load; the rest of the page stays
npm run bench -- --only lateness,burst         # one or some of: ${WORKLOADS.join(', ')}
\`\`\`

This page is written by that command. Do not edit it; what the profiles show is kept in \`bench/report/findings.md\`.`;

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
  } = plan;
  return `## Method

- **One machine, one clock.** The sink that receives the fires is a process of its own: it reads each body to its end, answers 202 and
  notes the time. Lateness is that time minus the instant the fire was due. The database server, the system under test, the sink
  and the program that runs all this share the machine's cores, and nobody is pinned to any.
- **The same work for all.** A fire is one POST of the same body (about 630 bytes) to the same sink. The peers POST through the
  very code that Reveille's waker uses (undici, 256 connections, keep-alive) and leave out what only Reveille does: it signs each
  wake, keeps a ledger of attempts and never has more than four wakes of one user under way.
- **The same database for all** that want PostgreSQL. One server with its default settings, durable as it comes; each run has a fresh
  database on it, vacuumed, analysed and checkpointed before the window. SQLite runs with \`synchronous=FULL\`, Redis with \`appendfsync always\`.
- **Jobs are stored beforehand,** in bulk, so that storing does not disturb firing. Processes are started afterwards and fire at the
  same rate for ${lateness.warmupSeconds} s before the window that counts.
- **${rounds === 1 ? 'One round' : `Medians of ${rounds} rounds`},** in each of which another system is first. What did not arrive counts as later than
  everything that did.
- **Lateness:** ${lateness.seconds} s at each rate, the due instants evenly spread, 200 users. After the window, ${'10'} s of patience.
- **Burst:** ${count(burst.count)} due within ${burst.seconds} s, counted from the first due instant to the last arrival. The raw POST rate is what the client
  and the sink reach in the same run with 256 POSTs always under way and no scheduler. The targets behind TLS and with 10 ms to think
  are this sink too.
- **Creates:** ${creates.seconds} s; each client is an agent that keeps its connection and token and waits for each answer. A bare insert is one
  row as wide as the alarm's in a transaction of its own, by as many clients at once, through the same driver.
- **Growth:** ${growth.seconds} s windows at ${growth.rate} fires/s while the others wait for a day or more, a thousand for each user. Claim time is that of
  one \`claim\` of 16 through the store port, in a process of its own.
- **Queue:** what public benchmarks of job queues in a database look at (rate and held transaction are those of [PgQue's](https://github.com/NikolayS/PgQue), "queues under blocked xmin horizon"; unlike there, jobs are stored beforehand and a window takes half a minute instead of three; the burst has a section of its own): ${count(queue.rate)}
  jobs a second for ${queue.seconds} s; the same while a transaction of isolation level REPEATABLE READ stays open; the same while the store is
  killed (\`kill -9\` of all its processes) after a third of the time and started again a second later. A process that ends because
  of it is started again within a second or two, as a supervisor does. One round.
- **Lasting load:** ${count(endurance.rate)} creates a second over HTTP by 32 clients, each due ten seconds later, so as many fires; ledger and ended alarms are
  forgotten after one window. And ${count(resident.rate)} a second with nothing forgotten, for what is resident after ten minutes.
- **Cold start:** from starting the process until it is of use, after one start that filled Node's compile cache.
- **Tool calls:** ${count(tools.calls)} calls of each kind a round through each way, all in one process, one call at a time, each way in turn in an order
  that is drawn anew for each call. Each way has a server process of its own, the official files server, new in each round: the
  short call lists the folders that it may read, the long one reads a file. The bare client has the library's default settings and
  has not asked for the list of tools, so it holds no result against a schema, as the host does not. The host guards against floods and
  long messages, keeps the tool's time limit, can be called off and cuts text that is too long; Neo makes parts for a model of it.
  All clients share one process and its garbage collection, so a p99 says little about a single way.
- **Boot:** ${boot.starts} starts, each in a new process, from the loading of the code to the last list of tools; the servers are official files
  servers, for Neo declared and pinned as in the manifest that ships. The compile cache was filled by a start before. Neo's time holds
  the loading of what a daemon has in use already, such as the logger.
- **Memory:** invented memories of some 15 words whose frequencies are those of speech (Zipf), in one file; ${count(memory.queries)} queries of each
  kind one after the other, without embeddings: what an endpoint takes is its own affair.
- **Receipts:** ${receipts.seconds} s windows in one process, on one thread but where the row says otherwise, each way in turn; the receipt of a transfer that was approved, from its task
  to its end. Checking it is reading the text strictly, hashes, signatures and whether what it tells can have happened.
- **Chronometric:** ${count(chronometric.starts)} starts of each server, in turn, after one that filled the compile cache; from starting the process over the
  handshake to the answer of \`get_time_context\`. Then ${count(chronometric.calls)} calls of each tool a round, the five in turn, one at a time, over the pipe. There
  is no profile, and so no consent to look at the desktop.
- **Public listener:** a daemon that answers at once with 4 KiB, asked with no proxy, through a reverse proxy of a dozen lines over the same HTTP client, and through the router with a
  person's credential, each in turn, each in a process of its own: ${count(proxy.calls)} requests one at a time, then ${proxy.seconds} s with 32 under way. What is added is the difference to no proxy in the
  same round. Then ${proxy.wakes} requests that find the machine asleep, beside as many starts of the same program alone.
- **Consoles:** ${count(consoles.count)} fires due within ${consoles.seconds} s, with the router's console open for nobody and for ${count(consoles.consoles)} people, who have come in with a token each and hold a stream of
  events; each reads its list of alarms again when it is told that one has changed, one read at a time, as the page does. chronosd, router, sink and readers share the machine's cores.`;
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
  return lines.length + missing.length === 0 ? [] : [['## Who runs, and how', '', ...lines, ...missing].join('\n')];
}

function resultsSection({ results }: Report): string {
  const sections = tablesOf(results).map((table) => [`### ${table.title}`, '', ...renderMarkdown(table)].join('\n'));
  return ['## Results', ...sections].join('\n\n');
}

function targetsSection({ results }: Report, findings: string): string {
  const verdicts = verdictsOf(results);
  const missed = verdicts.filter(({ reached }) => !reached);
  const sentence =
    missed.length === 0
      ? `${verdicts.length === 1 ? 'The one target is' : `All ${verdicts.length} targets are`} reached.`
      : `${verdicts.length - missed.length} of ${verdicts.length} targets are reached. It falls short here:`;
  const lines = missed.map(({ target, limit, measured, missedBy, note }) => {
    const because = note === undefined ? '' : ` It ${note}.`;
    return `- **${target}:** ${measured} instead of ${limit}, ${missedBy}.${because}`;
  });
  const table = renderMarkdown(verdictsTable(verdicts)).join('\n');
  const parts = ['## Where it stands, and where it falls short', table, sentence];
  if (lines.length > 0) parts.push(lines.join('\n'));
  if (findings.trim() !== '') parts.push('### What the profiles show', findings.trim());
  return parts.join('\n\n');
}

/** One line for all that was measured on one day with the same code on the same kind of machine. */
function dates({ measured }: Report): string {
  const lines = new Map<string, string[]>();
  for (const name of WORKLOADS) {
    const each = measured[name];
    if (!each) continue;
    const line = `${each.at.slice(0, 10)}, commit ${each.commit}, ${each.cpu}`;
    lines.set(line, [...(lines.get(line) ?? []), name]);
  }
  const rows = [...lines].map(([line, names]) => `- ${line}: ${names.join(', ')}`);
  const remark = rows.length > 1 ? '\n\nOnly figures of one line can be compared with each other.' : '';
  return `Measured:\n\n${rows.join('\n')}${remark}`;
}

/** @param findings what somebody found in the profiles, as Markdown; may be empty */
export function renderPage(report: Report, findings: string): string {
  const parts = [
    INTRODUCTION,
    dates(report),
    targetsSection(report, findings),
    resultsSection(report),
    ...systemsSection(report),
    method(report),
    machineSection(report),
  ];
  return `${parts.join('\n\n')}\n`;
}
