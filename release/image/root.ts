import { chmodSync, cpSync, globSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Base } from './base.ts';

const home = '/opt/argocd-fleet';
/** The commands of the image, and what they are; those of /bin and /manager are the paths in the originals' images. */
const commands = {
  '/usr/local/bin/argocd-agent': 'argocd-agent',
  '/usr/local/bin/gitops-controller': 'gitops-controller',
  '/usr/local/bin/argocd-agentctl': 'argocd-agentctl',
  '/usr/local/bin/kubectl-argocd_fleet': 'argocd-agentctl',
  '/bin/argocd-agent': 'argocd-agent',
  '/manager': 'gitops-controller',
};

/** Where the root file system of the image is made from, and where to. */
export interface RootOptions {
  /** The files of an image with Node.js. */
  readonly base: string;
  /** What `npm run build` has made. */
  readonly dist: string;
  /** Made by this. */
  readonly root: string;
}

/**
 * Lays out the root file system of the image: Node.js with the libraries that it loads, and the programs. There is no shell,
 * and no other command. Nothing of the base is run, so that it may be one for another architecture. Scanners find what
 * packages the libraries come from, as in distroless images.
 * @throws Error when the base has no Node.js
 */
export function layOutRoot({ base: folder, dist, root }: RootOptions): void {
  const base = new Base(folder);
  const node = base.first(['/usr/local/bin/node', '/usr/bin/node']);
  if (node === undefined) {
    throw new Error('the base image has no Node.js');
  }
  const put = (path: string, content: string | Buffer, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content, { mode });
  };
  const files = base.filesOf(node);
  for (const path of files) {
    put(path, base.read(path) ?? '', 0o755);
  }
  for (const { name, status, copyright } of base.packagesOf(files)) {
    put(`/var/lib/dpkg/status.d/${name}`, `${status.trim()}\n`);
    put(`/usr/share/doc/${name}/copyright`, copyright);
  }
  for (const path of ['/etc/os-release', '/usr/local/LICENSE']) {
    const content = base.read(path);
    if (content !== undefined) {
      put(path, content);
    }
  }
  put('/etc/passwd', 'root:x:0:0::/:/sbin/nologin\nargocd:x:999:999::/:/sbin/nologin\n');
  put('/etc/group', 'root:x:0:\nargocd:x:999:\n');
  put('/etc/nsswitch.conf', 'hosts: files dns\n');
  cpSync(dist, join(root, home), { recursive: true });
  for (const program of new Set(Object.values(commands))) {
    const file = `${home}/bin/${program}.js`;
    put(file, readFileSync(join(root, file), 'utf8').replace(/^#!.*/, `#!${node}`), 0o755);
  }
  for (const [path, program] of Object.entries(commands)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(`${home}/bin/${program}.js`, join(root, path));
  }
  mkdirSync(join(root, 'tmp'));
  setRights(root);
}

/** Rights that do not depend on who checked the sources out. */
function setRights(root: string): void {
  for (const path of ['.', ...globSync('**', { cwd: root })]) {
    const file = join(root, path);
    const entry = lstatSync(file);
    if (!entry.isSymbolicLink()) {
      chmodSync(file, entry.isDirectory() || (entry.mode & 0o100) !== 0 ? 0o755 : 0o644);
    }
  }
  chmodSync(join(root, 'tmp'), 0o1777);
}
