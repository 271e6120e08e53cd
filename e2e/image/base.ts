import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const project = new URL('../..', import.meta.url).pathname;

/** What the Dockerfile's steps call. */
const commands = ['sh', 'env'];

/**
 * Makes, of what this machine has, an image that can stand in for the Dockerfile's base: Node.js, npm, the libraries that
 * they need, and a shell. No registry is asked for it.
 */
export function makeBase(tag: string, podmanFlags: readonly string[]): void {
  const root = mkdtempSync(join(tmpdir(), 'image-base-'));
  try {
    layOut(root);
    const archive = `${root}.tar`;
    try {
      execFileSync('tar', ['-C', root, '-cf', archive, '.']);
      execFileSync('podman', [...podmanFlags, 'import', '--quiet', archive, tag], { stdio: 'ignore' });
    } finally {
      rmSync(archive, { force: true });
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The image of a name to build on: `local` is made now. */
export function useBase(name: string | undefined): string | undefined {
  if (name !== 'local') {
    return name;
  }
  const tag = 'localhost/argocd-fleet-base:local';
  // The former one would stay, without a name.
  execFileSync('podman', ['rmi', '--ignore', tag], { stdio: 'ignore' });
  makeBase(tag, []);
  return tag;
}

function layOut(root: string): void {
  for (const folder of ['usr/bin', 'usr/local/bin', 'usr/lib', 'usr/lib64', 'etc/ssl/certs', 'root', 'proc', 'sys']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const folder of ['dev', 'run', 'var/tmp']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  mkdirSync(join(root, 'tmp'), { mode: 0o1777 });
  for (const folder of ['bin', 'lib', 'lib64']) {
    symlinkSync(`usr/${folder}`, join(root, folder));
  }
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    copyFileSync(from, join(root, to));
  };
  put(process.execPath, 'usr/local/bin/node');
  for (const command of commands) {
    put(`/bin/${command}`, `usr/bin/${command}`);
  }
  const bundler = globSync('node_modules/@rolldown/binding-*/*.node', { cwd: project }).map((path) =>
    join(project, path),
  );
  for (const program of [process.execPath, ...bundler, ...commands.map((command) => `/bin/${command}`)]) {
    for (const library of librariesOf(program)) {
      put(library, library);
    }
  }
  // What a base of Debian's packages knows of them.
  put('/etc/os-release', 'etc/os-release');
  for (const name of ['libc6', 'libgcc-s1', 'libstdc++6']) {
    for (const path of globSync([`/var/lib/dpkg/info/${name}{,:*}.list`, `/usr/share/doc/${name}/copyright`])) {
      put(path, path);
      put('/var/lib/dpkg/status', 'var/lib/dpkg/status');
    }
  }
  // …/npm/bin/npm-cli.js
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim());
  cpSync(dirname(dirname(npm)), join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  const authorities = process.env.NODE_EXTRA_CA_CERTS ?? '/etc/ssl/certs/ca-certificates.crt';
  if (existsSync(authorities)) {
    put(authorities, 'etc/ssl/certs/ca-certificates.crt');
  }
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\n');
}

function librariesOf(program: string): string[] {
  const text = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...text.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path = '']) => path);
}
