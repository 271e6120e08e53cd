import { describe, expect, it } from 'vitest';
import { buildCommand, engineNames, findEngine, NoEngineError, type Runner } from './engine.ts';

/** A machine with these commands; what they answer, or the error that they end with. */
const machine =
  (commands: Record<string, string | Error>): Runner =>
  async (command) => {
    const answer = commands[command] ?? Object.assign(new Error(`spawn ${command} ENOENT`), { code: 'ENOENT' });
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  };
const noDaemon = Object.assign(new Error('Command failed'), {
  code: 1,
  stderr: 'Client:\nCannot connect to the Docker daemon at unix:///var/run/docker.sock.\n',
});

describe('the container engine', () => {
  it('is the first that works', async () => {
    expect(await findEngine(engineNames, machine({ docker: '28.2.2', podman: 'host:' }))).toBe('docker');
    expect(await findEngine(engineNames, machine({ docker: noDaemon, podman: 'host:', buildah: '{}' }))).toBe('podman');
    expect(await findEngine(engineNames, machine({ buildah: '{}' }))).toBe('buildah');
  });

  it('is the one that was asked for, if it works', async () => {
    expect(await findEngine(['buildah'], machine({ docker: '28', podman: 'host:', buildah: '{}' }))).toBe('buildah');
    await expect(findEngine(['docker'], machine({ podman: 'host:' }))).rejects.toThrow(/docker: not installed/);
  });

  it('is told to be missing, with what is the matter with each', async () => {
    const failure = await findEngine(engineNames, machine({ docker: noDaemon })).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NoEngineError);
    expect((failure as Error).message).toBe(
      [
        'No container engine can be used:',
        '  docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.',
        '  podman: not installed',
        '  buildah: not installed',
        'Install one of them (Debian, Ubuntu: apt-get install buildah).',
      ].join('\n'),
    );
  });

  const request = { engine: 'podman', tag: 'a/b:1', revision: 'abc', date: '2026-01-01T00:00:00Z' } as const;
  const values = ['--build-arg', 'GIT_REVISION=abc', '--build-arg', 'BUILD_DATE=2026-01-01T00:00:00Z'];
  const equal = ['--timestamp', '1767225600', '--identity-label=false', '--layers=false'];

  it('builds the Dockerfile', () => {
    const args = ['build', ...values, ...equal, '--tag', 'a/b:1', '.'];
    expect(buildCommand(request)).toEqual({ command: 'podman', args });
    const more = { base: 'node:24', npmrc: '/home/me/.npmrc', flags: ['--quiet'] };
    expect(buildCommand({ ...request, ...more }).args).toEqual([
      'build',
      ...values,
      ...['--build-arg', 'NODE_IMAGE=node:24'],
      ...equal,
      ...['--secret', 'id=npmrc,src=/home/me/.npmrc', '--tag', 'a/b:1', '--quiet', '.'],
    ]);
    expect(buildCommand({ ...request, engine: 'docker' }).args).toEqual([
      'build',
      ...values,
      ...['--build-arg', 'SOURCE_DATE_EPOCH=1767225600', '--tag', 'a/b:1', '.'],
    ]);
  });

  it('builds it for several architectures', () => {
    const { args } = buildCommand({ ...request, engine: 'buildah', platforms: ['linux/amd64', 'linux/arm64'] });
    expect(args.slice(-5)).toEqual(['--platform', 'linux/amd64,linux/arm64', '--manifest', 'a/b:1', '.']);
  });
});
