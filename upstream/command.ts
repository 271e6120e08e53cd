import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeError, printable, printableLines } from '../lib/ops/index.ts';
import { openCheckout } from './checkout.ts';
import { compareFacts, type UpstreamNews } from './compare.ts';
import { type FactKind, factKinds } from './facts.ts';
import { parseKnown } from './known.ts';
import { followedProjects, readProject } from './projects.ts';

const names = Object.keys(followedProjects);
const usage = `Usage: npm run upstream -- --of PROJECT CHECKOUT [OPTIONS]

Compares a checkout of a project that this one follows with what this one knows, and prints what is new: commands, flags,
environment variables, params, metrics, labels and annotations, fields of CRDs, protocol, chart values, kustomizations, end-to-end
tests. What this project has itself is known from its own code, charts and pages. upstream/known.yaml says the rest, with the
reason.

PROJECT is one of ${names.join(', ')}.
CHECKOUT is a folder with the project's files, or a Git repository of it.

  --ref REF      reads this revision of the Git repository: a branch, a tag, refs/pull/1049/head. Without it the files
                 of the folder, or HEAD of a repository that has none
  -o, --output   text or json
  --help         this text

Exit code: 0 when nothing is new, 1 when something is, 2 after an error.
`;

/** Runs the command with its arguments. @returns its exit code */
export function runUpstream(
  args: readonly string[],
  write: (text: string) => void,
  complain: (text: string) => void,
  known = readFileSync(join(import.meta.dirname, 'known.yaml'), 'utf8'),
): 0 | 1 | 2 {
  try {
    const options = parse(args);
    if (options === undefined) {
      write(usage);
      return 0;
    }
    const { of, folder, ref, output } = options;
    const checkout = openCheckout(folder, ref);
    const { facts, owns } = readProject(of, checkout);
    const news = compareFacts(facts, owns, parseKnown(known, names)[of] ?? []);
    write(
      output === 'json'
        ? `${JSON.stringify({ project: of, checkout: checkout.place, new: news.fresh.map(({ kind, name, file }) => ({ kind, name, file })), gone: news.gone }, null, 2)}\n`
        : report(of, checkout.place, news),
    );
    return news.fresh.length === 0 ? 0 : 1;
  } catch (error) {
    // Nothing but news may end with 1.
    complain(`${printableLines(describeError(error))}\n${error instanceof UsageProblem ? `\n${usage}` : ''}`);
    return 2;
  }
}

/** The arguments are wrong; the message says how. */
class UsageProblem extends Error {
  override readonly name = 'UsageProblem';
}

/** @returns undefined when only help is asked for */
function parse(args: readonly string[]) {
  const { values, positionals } = parsed(args);
  const { of, ref, output, help } = values;
  if (help) {
    return undefined;
  }
  const [folder, ...others] = positionals;
  if (of === undefined || folder === undefined || others.length > 0) {
    throw new UsageProblem('--of PROJECT and one CHECKOUT are needed');
  }
  if (!names.includes(of)) {
    throw new UsageProblem(`there is no project ${of}; it must be one of ${names.join(', ')}`);
  }
  if (output !== 'text' && output !== 'json') {
    throw new UsageProblem(`--output must be text or json, not ${output}`);
  }
  return { of, folder, ref, output };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        of: { type: 'string' },
        ref: { type: 'string' },
        output: { type: 'string', short: 'o', default: 'text' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    throw new UsageProblem((error as Error).message);
  }
}

/** The news for people. */
function report(project: string, place: string, { fresh, gone }: UpstreamNews): string {
  const lines = [
    `${project}, ${place}: ${fresh.length === 0 ? 'nothing is new.' : `${fresh.length} new.`}`,
    ...(Object.entries(factKinds) as [FactKind, string][]).flatMap(([kind, heading]) => {
      const facts = fresh.filter((fact) => fact.kind === kind);
      return facts.length === 0 ? [] : ['', heading, ...table(facts.map(({ name, file }) => [name, file]))];
    }),
    ...(gone.length === 0
      ? []
      : ['', 'Entries of upstream/known.yaml that are not needed for this', ...table(gone.map(rowOf))]),
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

const rowOf = ({ kind, name, because }: UpstreamNews['gone'][number]): [string, string] => [
  `${kind}: ${name}`,
  because,
];

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.min(90, Math.max(...rows.map(([left]) => left.length)));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
