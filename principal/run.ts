import { startProgram } from '../lib/bridge/index.ts';
import { type CommandContext, commandLoggers } from '../lib/ops/index.ts';
import { asksForCipherSuites, cipherSuiteCatalogue } from '../lib/wire/index.ts';
import { startEngine } from './engine.ts';
import type { PrincipalFlags, principalFlags } from './flags.ts';
import { runPair } from './ha/pair.ts';
import { openInputs } from './inputs.ts';
import { startServers } from './servers.ts';
import { principalSettings } from './settings.ts';

/**
 * Runs the principal until aborted.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runPrincipal(
  flags: PrincipalFlags,
  context: CommandContext<typeof principalFlags>,
): Promise<void> {
  if (asksForCipherSuites(flags['tls-ciphersuites'])) {
    return context.stdout(cipherSuiteCatalogue());
  }
  const settings = principalSettings(flags, context.parsed.given);
  const loggers = commandLoggers('principal', flags, context);
  const logger = loggers.root;
  const program = await startProgram({
    name: 'principal',
    service: 'principal',
    flags,
    env: context.env,
    signal: context.signal,
    about: ({ server }) => ({ server }),
    logger,
  });

  if (settings.ha !== undefined) {
    await program.serveMetrics();
    await runPair({ settings, ha: settings.ha, program, loggers, env: context.env });
    return await program.close();
  }
  const inputs = await openInputs(settings, program, loggers, context.env);
  const engine = startEngine(settings, program, inputs, loggers, context.env);
  await program.serveMetrics();
  program.health('waiting for the key material (Secrets or files)');
  const servers = await startServers(settings, program, inputs, engine, loggers);
  program.health(undefined);
  const { principalUid } = inputs;
  logger.info({ port: servers.port, namespace: flags.namespace, principalUid }, 'principal serves agents');

  await program.stopped();
  logger.info('principal stops');
  // The streams end first, so that agents reconnect elsewhere at once.
  const closed = servers.closeAgents();
  await Promise.all([engine.ended, servers.ended]);
  await engine.recordEnd();
  await Promise.all([closed, engine.flushEvents(), program.close()]);
}
