import { expect, test } from 'vitest';
import { problemOf } from './checks.ts';
import { notRun, reasonNotToRun } from './not-run.ts';
import { commandPages } from './pages.ts';
import { linesByScene } from './scenes.ts';
import { type ShellCommand, shellCommands, shellLines } from './shell.ts';

const commands = [...commandPages].flatMap(([page, text]) => shellCommands(page, text));
const lines = [...commandPages].flatMap(([page, text]) => shellLines(page, text));

/** What is not checked, by the start of the line, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'hub() {': 'a function of the shell, which run.it.test.ts runs',
  'new() {': 'likewise',
  'hub get': 'the function above',
  '(umask 077': 'the function above',
  'new set-': 'the function above',
  'new use-': 'the function above',
};
const exceptionOf = ({ text }: ShellCommand) => Object.keys(exceptions).find((start) => text.startsWith(start));

test('every shell command of the pages has a program, commands, flags, values and files that exist', () => {
  expect(commands.length).toBeGreaterThan(80);
  const problems = commands
    .filter((command) => exceptionOf(command) === undefined)
    .flatMap((command) => {
      const problem = problemOf(command);
      return problem === undefined ? [] : [`${command.page}:${command.line}: ${command.text}: ${problem}`];
    });
  expect(problems).toEqual([]);
});

test('every exception is used', () => {
  const used = new Set(commands.map(exceptionOf));
  expect(Object.keys(exceptions).filter((start) => !used.has(start))).toEqual([]);
});

test('every line is run in a scene, or listed with the reason why it is not', () => {
  const run = new Set([...linesByScene(lines).values()].flat());
  expect(lines.filter((line) => reasonNotToRun(line) === undefined && !run.has(line))).toEqual([]);
});

test('whatever is listed as not run, replaced or a scene is on its page', () => {
  expect(notRun.filter(([start]) => !lines.some(({ text }) => text.startsWith(start)))).toEqual([]);
  const stale = [...linesByScene(lines)].flatMap(([{ page, from, before, replace, codes }, own]) => {
    const starts = [from, ...Object.keys(before ?? {}), ...Object.keys(codes ?? {})];
    const missing = starts.filter((start) => !own.some(({ text }) => text.startsWith(start)));
    const unused = Object.keys(replace ?? {}).filter((part) => !own.some(({ text }) => text.includes(part)));
    return [...missing, ...unused].map((what) => `${page}: ${what}`);
  });
  expect(stale).toEqual([]);
});

test.each([
  ['argocd-agent enrol cluster1', 'argocd-agent has no command "enrol"'],
  ['argocd-agent enroll cluster1 --principal host', 'argocd-agent enroll has no flag --principal'],
  ['argocd-agent enroll', 'argocd-agent enroll takes NAME'],
  ['argocd-agentctl status -o json | jjq .', 'nobody knows jjq'],
  ['gitops-controller adopt --dry', 'gitops-controller adopt has no flag --dry'],
  ['npm run demonstrate', 'package.json has no script demonstrate'],
  ['make everything', 'the Makefile has no everything'],
  ['helm install x ./charts/none', 'there is no chart ./charts/none'],
  ['helm install x ./charts/argocd-agent-agent --set sever=x', './charts/argocd-agent-agent has no value sever'],
  ['kubectl apply -f charts/none', 'charts/none does not exist'],
  ['kubectl -n a get gitopscluster', 'this test does not know the kind "gitopscluster"'],
  ['kubectl annotate secret a apps.open-cluster-management.io/rotates=1', 'nobody knows the label or annotation'],
  ['npx vitest run --project unit lib/none.test.ts', 'lib/none.test.ts does not exist'],
])('a command that is wrong is found: %s', (line, problem) => {
  const found = shellCommands('page', `\`\`\`sh\n${line}  # x\n\`\`\`\n`).flatMap(
    (command) => problemOf(command) ?? [],
  );
  expect(found.join()).toContain(problem);
});
