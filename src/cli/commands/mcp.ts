/** `reveille mcp`: the alarm tools over stdio, and their self-test. */
import { join } from 'node:path';
import { localChronosDefaults } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';

async function selftest(context: CliContext): Promise<void> {
  const { runSelftest } = await import('../../chronos-mcp/selftest.ts');
  const { TOOLS_FILE } = await import('../../chronos-mcp/tools.ts');
  const report = runSelftest({
    toolsFile: TOOLS_FILE,
    agentsDir: join(PACKAGE_ROOT, 'agents'),
    skillsDir: join(PACKAGE_ROOT, 'skills'),
  });
  const verdict = report.ok
    ? `the tools agree in ${report.checked.length} places`
    : report.differences.map((difference) => `differs: ${difference}`);
  context.out.result(report, verdict);
  if (!report.ok) context.process.exitCode = EXIT.failed;
}

export async function mcp(context: CliContext, flags: { selftest?: boolean }): Promise<void> {
  if (flags.selftest) return selftest(context);
  const { startChronosMcp } = await import('../../chronos-mcp/server.ts');
  const log = await context.log('chronos-mcp', 'warn');
  const server = startChronosMcp({
    settings: context.settings,
    localDefaults: () => localChronosDefaults(context),
    log,
    clock: context.clock,
  });
  const end = () => void server.close();
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  await server.closed;
  // Calls to chronosd that were given up may still hold a socket; nobody waits for them.
  process.exit(EXIT.done);
}
