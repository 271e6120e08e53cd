import { createHash } from 'node:crypto';
import { z } from 'zod';

const lockedPackage = z.object({
  version: z.string().default(''),
  license: z.string().optional(),
  integrity: z.string().optional(),
  dev: z.boolean().default(false),
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});
const lockFile = z.object({ packages: z.record(z.string(), lockedPackage) });

/** A package that the programs are made with. */
export interface UsedPackage {
  /** Where npm puts it: `node_modules/a/node_modules/b`. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  /** SHA-512 of its archive, hex; undefined when the lock does not know it. */
  readonly sha512: string | undefined;
  /** The paths of the packages that it uses. */
  readonly uses: readonly string[];
}

/** The packages that the programs are made with, by path; those of development alone are left out. */
export function usedPackages(lock: string): readonly UsedPackage[] {
  const { packages } = lockFile.parse(JSON.parse(lock));
  const isUsed = (path: string) => packages[path] !== undefined && !packages[path].dev;
  return Object.entries(packages)
    .filter(([path, { dev }]) => !dev && path !== '')
    .map(([path, { version, license, integrity, dependencies, optionalDependencies }]) => ({
      path,
      name: nameOf(path),
      version,
      license,
      sha512: integrity?.startsWith('sha512-')
        ? Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex')
        : undefined,
      uses: Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) => {
        const found = resolve(path, name, isUsed);
        return found === undefined ? [] : [found];
      }),
    }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** Where Node.js finds a package that another one uses: from the inside out. */
function resolve(from: string, name: string, exists: (path: string) => boolean): string | undefined {
  for (let at = from; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const inside = `${at}/node_modules/${name}`;
    if (exists(inside)) {
      return inside;
    }
  }
  const outermost = `node_modules/${name}`;
  return exists(outermost) ? outermost : undefined;
}

/** Package URL: https://github.com/package-url/purl-spec */
const purlOf = ({ name, version }: Pick<UsedPackage, 'name' | 'version'>) =>
  `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** The bill of materials of the programs, CycloneDX 1.6 in JSON; the same for the same lock file, version and date. */
export function billOfMaterials(
  packages: readonly UsedPackage[],
  { name, version, date }: { readonly name: string; readonly version: string; readonly date: Date },
): string {
  const references = new Map(packages.map((one) => [one.path, `${purlOf(one)}#${one.path}`]));
  const referenceOf = (path: string) => references.get(path) ?? path;
  const product = `pkg:npm/${name}@${version}`;
  const components = packages.map((one) => ({
    type: 'library',
    'bom-ref': referenceOf(one.path),
    name: one.name,
    version: one.version,
    ...(one.license === undefined ? {} : { licenses: [licenseOf(one.license)] }),
    purl: purlOf(one),
    ...(one.sha512 === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: one.sha512 }] }),
  }));
  const top = packages.filter(({ path }) => path.lastIndexOf('node_modules/') === 0);
  const dependencies = [
    { ref: product, dependsOn: top.map(({ path }) => referenceOf(path)) },
    ...packages.map(({ path, uses }) => ({ ref: referenceOf(path), dependsOn: uses.map(referenceOf) })),
  ];
  const digest = createHash('sha256')
    .update(JSON.stringify([product, components]))
    .digest('hex');
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(digest)}`,
    version: 1,
    metadata: {
      timestamp: date.toISOString(),
      component: {
        type: 'application',
        'bom-ref': product,
        name,
        version,
        purl: product,
        licenses: [licenseOf('Apache-2.0')],
      },
    },
    components,
    dependencies,
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** An identifier of SPDX, or an expression of several. */
const licenseOf = (license: string) => (/[ ()]/.test(license) ? { expression: license } : { license: { id: license } });

/** A UUID of version 8, whose bits are our own choice (RFC 9562). */
function uuidOf(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}

/** Licences that ask for no more than to be named: what a package may have. */
const permissive = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'PSF-2.0', 'Unlicense'];

/** The licences of the packages, as a table in Markdown. @throws Error for a package with none, or with one that asks for more */
export function licenceReport(packages: readonly UsedPackage[]): string {
  const rows = packages.map(({ name, version, license }) => {
    if (license === undefined) {
      throw new Error(`${name} ${version} has no licence`);
    }
    const parts = license.match(/[\w.+-]+/g) ?? [];
    if (parts.some((part) => part !== 'AND' && part !== 'OR' && !permissive.includes(part))) {
      throw new Error(`${name} ${version} has the licence ${license}: is it one that this project can have?`);
    }
    return `| ${name} | ${version} | ${license} |`;
  });
  return [
    '# Licences of the packages',
    '',
    '| Package | Version | Licence |',
    '|---|---|---|',
    ...new Set(rows),
    '',
  ].join('\n');
}
