import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { completionScript } from '../completion.ts';
import { ctlExecutable } from '../executable.ts';
import { runCtl } from '../testing/run-ctl.ts';

const bash = completionScript(ctlExecutable(), 'bash', 'argocd-agentctl');

/** What bash would offer after these words; the last one is being typed. */
function offered(...words: string[]): string[] {
  const script = `${bash}
    COMP_WORDS=(argocd-agentctl ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}
    _argocd_agentctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
}

test('bash completes commands, also after flags and by aliases, and flags', () => {
  expect(offered('pk')).toEqual(['pki']);
  expect(offered('pki', 'issue', '')).toEqual(['principal', 'resource-proxy', 'agent', 'shared-client', 'ha-admin']);
  expect(offered('pki', 'new-cert', 're')).toEqual(['resource-proxy']);
  expect(offered('--principal-context', 'hub', 'blocklist', 'tls', 'a')).toEqual(['add']);
  expect(offered('agent', 'create', 'east', '--key-')).toEqual(['--key-algorithm', '--key-size']);
  expect(offered('agent', 'create', 'east', '--principal-c')).toEqual(['--principal-context']);
});

test('bash asks the hub that the flags name for names of agents and Applications, and for nothing else', () => {
  const folder = mkdtempSync(join(tmpdir(), 'completion-'));
  const program = join(folder, 'argocd-agentctl');
  writeFileSync(program, '#!/bin/sh\nfor word; do echo "asked:$word"; done\n');
  chmodSync(program, 0o755);
  const at = (words: string[]) => {
    const script = `${bash}
      COMP_WORDS=(${program} ${words.join(' ')} ''); COMP_CWORD=${words.length + 1}
      _argocd_agentctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
  };
  try {
    expect(at(['doctor'])).toEqual(['completion', 'names', 'agents'].map((word) => `asked:${word}`));
    expect(at(['--context', 'hub', 'trace', '-n', 'gitops', '--agent-context', 'east'])).toEqual(
      ['completion', 'names', 'applications', '--context', 'hub', '-n', 'gitops'].map((word) => `asked:${word}`),
    );
    expect(at(['agent', 'inspect', '--kubeconfig=/k'])).toContain('asked:--kubeconfig=/k');
    expect(at(['agent', 'create'])).toEqual(['']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each(['zsh', 'fish'] as const)(
  'the script for %s names every command and, where the shell is here, parses',
  async (shell) => {
    const { out } = await runCtl(['completion', shell]);
    for (const { name } of ctlExecutable().commands) {
      const words = name.split(' ');
      expect(out).toContain(words.at(-1));
      expect(out).toContain(words.join(' '));
    }
    const folder = mkdtempSync(join(tmpdir(), 'completion-'));
    const file = join(folder, shell);
    writeFileSync(file, out);
    const { error, status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    rmSync(folder, { recursive: true });
    if (error === undefined) {
      expect([status, stderr]).toEqual([0, '']);
    }
  },
);
