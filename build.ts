/* `npm run build [-- FOLDER]`: what the image runs, in `dist` or another folder, which it replaces. */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';

const project = import.meta.dirname;
const dist = resolve(project, process.argv[2] ?? 'dist');
const programs = ['argocd-agent', 'argocd-agentctl', 'gitops-controller'];

const bundle = await rolldown({
  cwd: project,
  platform: 'node',
  plugins: [builtInHttp()],
  // The names of modules stand in the bundle: not those of where node_modules may be a link to.
  resolve: { symlinks: false },
  input: {
    ...Object.fromEntries(programs.map((name) => [`bin/${name}`, `bin/${name}.ts`])),
    // A thread of its own, which lib/auth starts from beside its own file.
    'lib/password-worker': 'lib/auth/password-worker.ts',
  },
});
rmSync(dist, { recursive: true, force: true });
const { output } = await bundle.write({
  dir: dist,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'lib/[name]-[hash].js',
  // Names and lines stay: a stack trace can be read.
  minify: false,
  comments: false,
});
await bundle.close();
const chunks = output.filter((part): part is OutputChunk => part.type === 'chunk');
for (const { fileName } of chunks) {
  const file = join(dist, fileName);
  writeFileSync(file, inAscii(readFileSync(file, 'utf8')));
}
for (const name of programs) {
  chmodSync(join(dist, 'bin', `${name}.js`), 0o755);
}
cpSync(join(project, 'templates'), join(dist, 'templates'), { recursive: true });
cpSync(join(project, 'principal/fleet-page/assets'), join(dist, 'fleet-page'), { recursive: true });
cpSync(join(project, 'LICENSE'), join(dist, 'LICENSE'));
writeFileSync(join(dist, 'THIRD-PARTY-NOTICES'), notices(chunks.flatMap(({ moduleIds }) => moduleIds)));
writeFileSync(join(dist, 'package.json'), JSON.stringify(stamp()));

/**
 * Takes node:http without an import: an import reads every export, and those for WebSocket load the fetch of Node.js, which
 * is 2.4 MB of heap that nothing uses.
 */
function builtInHttp(): Plugin {
  const id = '\0node:http';
  return {
    name: 'built-in-http',
    resolveId: (name) => (name === 'node:http' || name === 'http' ? id : null),
    load: (name) => (name === id ? "module.exports = process.getBuiltinModule('node:http');" : null),
  };
}

/**
 * Writes characters beyond ASCII as escapes. V8 keeps the text of a program as long as it runs, with two bytes for each
 * character as soon as one of them needs two.
 */
function inAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The licences of the packages that are in the bundle. @throws Error when a package has none */
function notices(modules: readonly string[]): string {
  const folders = new Set(modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0] ?? []));
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
      if (files.length === 0 && !license) {
        throw new Error(`${name} has no licence`);
      }
      const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
      return [`${name} ${version} (${license})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

/** What `argocd-agent version` prints. */
function stamp(): object {
  const { name, version, type, license } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const { GIT_REVISION: gitRevision = 'unknown', BUILD_DATE } = process.env;
  return { name, version, type, license, gitRevision, buildDate: BUILD_DATE || new Date().toISOString() };
}
