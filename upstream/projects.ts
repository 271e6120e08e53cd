import { dirname } from 'node:path';
import { argocdAgent } from '../bin/argocd-agent-commands.ts';
import { gitOpsController } from '../bin/gitops-controller-commands.ts';
import { ctlExecutable } from '../ctl/index.ts';
import type { Checkout } from './checkout.ts';
import { CheckoutError } from './error.ts';
import { type Fact, type FactKind, factKinds } from './facts.ts';
import { ownCommands, ownEnvironment, ownFile, ownMarks, ownMetrics, ownParams, ownTree } from './own.ts';
import { readCommands, readFlags } from './read/commands.ts';
import { readEnvironment } from './read/environment.ts';
import { withoutComments } from './read/go-source.ts';
import { readMarks } from './read/marks.ts';
import { readMetrics } from './read/metrics.ts';
import { readParams } from './read/params.ts';
import { readProto } from './read/proto.ts';
import { crdSchemas, type FieldTree, hasField, hasValue, readCrdFields, readValues } from './read/schema.ts';
import { readTests } from './read/tests.ts';

/** How one kind of things of another project is read, and whether this project has one of them. */
interface Reader {
  readonly kind: FactKind;
  readonly read: (checkout: Checkout) => readonly Fact[];
  /** Made once. Without it only the list of known things says so. */
  readonly owns?: () => (fact: Fact) => boolean;
}

/** A project that this one follows. */
interface Project {
  /** The Go module: what its go.mod says, perhaps with a major version behind it. */
  readonly module: string;
  readonly readers: readonly Reader[];
}

const goTests = ['**/*_test.go', '**/mocks/**', '**/testdata/**'];

function goSources(checkout: Checkout, patterns: readonly string[], except: readonly string[] = goTests) {
  const sources = checkout.read(patterns, except);
  return new Map(Array.from(sources, ([file, text]) => [file, withoutComments(text)]));
}

/** The values of charts, compared with the schema of our chart of the same name. */
function chartValues(files: Readonly<Record<string, string>>): Reader {
  return {
    kind: 'values',
    read: (checkout) =>
      Object.entries(files).flatMap(([chart, file]) =>
        Array.from(checkout.read([file])).flatMap(([path, text]) => readValues(chart, path, text)),
      ),
    owns: () => {
      const schemas = new Map(
        Object.keys(files).map((chart) => [
          chart,
          JSON.parse(ownFile(`charts/${chart}/values.schema.json`)) as FieldTree,
        ]),
      );
      return ({ name }) => {
        const chart = name.split(' ')[0] ?? '';
        const schema = schemas.get(chart);
        return schema !== undefined && hasValue(schema, chart, name);
      };
    },
  };
}

/** The fields of CRDs, compared with CRDs of ours. */
function crdFields(theirs: readonly string[], ours: readonly string[]): Reader {
  return {
    kind: 'fields',
    read: (checkout) => readCrdFields(checkout.read(theirs)),
    owns: () => {
      const crds = crdSchemas(ownTree.read(ours));
      return ({ name }) => hasField(crds, name);
    },
  };
}

function endToEndTests(patterns: readonly string[]): Reader {
  return { kind: 'tests', read: (checkout) => readTests(goSources(checkout, patterns, [])) };
}

/** The folders of install/kubernetes that `kubectl apply -k` takes. */
function readKustomizations(checkout: Checkout): Fact[] {
  const files = checkout.read(['install/kubernetes/**/kustomization.yaml']);
  return Array.from(files.keys(), (file) => ({ kind: 'kustomizations', name: dirname(file), file }));
}

const agentPrograms: Reader[] = (['commands', 'flags'] as const).map((kind) => ({
  kind,
  read: (checkout) =>
    ['cmd/argocd-agent/*.go', 'cmd/ctl/*.go']
      .flatMap((folder) => readCommands(goSources(checkout, [folder])))
      .filter((fact) => fact.kind === kind),
  owns: () => ownCommands([argocdAgent, ctlExecutable()]),
}));

const agentSources = ['{cmd,internal,pkg,agent,principal}/**/*.go'];

/** Argo CD's programs that this project delivers: to clusters, and to a hub. */
const delivered: Readonly<Record<string, readonly string[]>> = {
  'application-controller': [
    'templates/argocd/30-application-controller.yaml.hbs',
    'charts/argocd-agent-addon/charts/argocd-hub/templates/application-controller.yaml',
  ],
  'repo-server': [
    'templates/argocd/40-repo-server.yaml.hbs',
    'charts/argocd-agent-addon/charts/argocd-hub/templates/repo-server.yaml',
  ],
  'applicationset-controller': [
    'templates/argocd/45-applicationset-controller.yaml.hbs',
    'charts/argocd-agent-addon/charts/argocd-hub/templates/applicationset-controller.yaml',
  ],
  server: ['charts/argocd-agent-addon/charts/argocd-hub/templates/server.yaml'],
};

const argoCdParams: Reader = {
  kind: 'params',
  read: (checkout) =>
    Object.keys(delivered).flatMap((program) =>
      readParams(checkout.read([`manifests/base/${program}/*.yaml`]), `${program} `),
    ),
  owns: () => {
    // Each of the places has to read it.
    const places = Object.fromEntries(
      Object.entries(delivered).map(([program, files]) => [program, files.map((file) => ownParams([file]))]),
    );
    return ({ name }) => {
      const [program = '', key = ''] = name.split(' ');
      return places[program]?.every((keys) => keys.has(key)) ?? false;
    };
  },
};

/** The projects that this one follows, by the names that `--of` takes. */
export const followedProjects: Readonly<Record<string, Project>> = {
  'argocd-agent': {
    module: 'github.com/argoproj-labs/argocd-agent',
    readers: [
      ...agentPrograms,
      {
        kind: 'environment',
        read: (checkout) => readEnvironment(goSources(checkout, agentSources)),
        owns: () => ownEnvironment([argocdAgent, ctlExecutable()]),
      },
      {
        kind: 'params',
        read: (checkout) =>
          readParams(
            checkout.read(['install/kubernetes/{agent,principal}/*.yaml', 'install/helm-repo/*/templates/*.yaml']),
          ),
        owns: () => {
          const keys = ownParams([
            'install/kubernetes/{agent,principal}/*.yaml',
            'charts/argocd-agent-{agent,principal}/templates/*',
            'templates/agent/*',
          ]);
          return ({ name }) => keys.has(name);
        },
      },
      {
        kind: 'metrics',
        read: (checkout) => readMetrics(goSources(checkout, agentSources)),
        owns: ownMetrics,
      },
      {
        kind: 'marks',
        read: (checkout) => readMarks(goSources(checkout, agentSources)),
        owns: ownMarks,
      },
      {
        kind: 'protocol',
        read: (checkout) => readProto(checkout.read(['principal/apis/**/*.proto'])),
        owns: () => {
          const names = new Set(readProto(ownTree.read(['proto/**/*.proto'])).map(({ name }) => name));
          return ({ name }) => names.has(name);
        },
      },
      chartValues({
        'argocd-agent-agent': 'install/helm-repo/argocd-agent-agent/values.schema.json',
        'argocd-agent-principal': 'install/helm-repo/argocd-agent-principal/values.schema.json',
      }),
      {
        kind: 'kustomizations',
        read: readKustomizations,
        owns: () => {
          const names = new Set(readKustomizations(ownTree).map(({ name }) => name));
          return ({ name }) => names.has(name);
        },
      },
      endToEndTests(['test/e2e/*_test.go']),
    ],
  },
  'argocd-pull-integration': {
    module: 'open-cluster-management.io/argocd-pull-integration',
    readers: [
      {
        kind: 'flags',
        read: (checkout) => readFlags('manager', goSources(checkout, ['cmd/*.go'])),
        owns: () => {
          // Its one program has its models as modes, and ours as commands.
          const known = ownCommands([gitOpsController]);
          const named = (fact: Fact, command: string) => ({ ...fact, name: fact.name.replace('manager', command) });
          return (fact) =>
            ['controller', 'basic'].some((command) => known(named(fact, `gitops-controller ${command}`)));
        },
      },
      {
        kind: 'environment',
        read: (checkout) => readEnvironment(goSources(checkout, ['{cmd,internal}/**/*.go'])),
        owns: () => ownEnvironment([gitOpsController]),
      },
      {
        kind: 'marks',
        read: (checkout) => readMarks(goSources(checkout, ['{api,cmd,internal}/**/*.go'])),
        owns: ownMarks,
      },
      crdFields(['charts/argocd-agent-addon/crds/*gitopsclusters.yaml'], ['charts/argocd-agent-addon/crds/*.yaml']),
      chartValues({
        'argocd-agent-addon': 'charts/argocd-agent-addon/values.yaml',
        'argocd-pull-integration': 'charts/argocd-pull-integration/values.yaml',
      }),
      endToEndTests(['test/e2e/*_test.go']),
    ],
  },
  'argo-cd': {
    module: 'github.com/argoproj/argo-cd',
    readers: [
      argoCdParams,
      {
        kind: 'metrics',
        read: (checkout) => readMetrics(goSources(checkout, ['controller/metrics/*.go'])),
        owns: ownMetrics,
      },
      crdFields(
        ['manifests/crds/{application,applicationset,appproject}-crd.yaml'],
        ['charts/argocd-agent-addon/charts/argocd-hub/files/crds/*.yaml'],
      ),
    ],
  },
  ocm: {
    module: 'open-cluster-management.io/ocm',
    readers: [
      crdFields(
        ['vendor/open-cluster-management.io/api/{addon,cluster,operator,work}/*/*.crd.yaml'],
        ['e2e/hub/crds/{hub,managed}/*.yaml'],
      ),
    ],
  },
};

/**
 * What a checkout of a project has, and whether this project has one of these things itself.
 * @throws CheckoutError when it is no checkout of that project, or the project has changed so much that nothing of a kind is found
 */
export function readProject(
  name: string,
  checkout: Checkout,
): { readonly facts: readonly Fact[]; readonly owns: (fact: Fact) => boolean } {
  const project = followedProjects[name];
  if (project === undefined) {
    throw new CheckoutError(
      `there is no project ${name}; it must be one of ${Object.keys(followedProjects).join(', ')}`,
    );
  }
  checkModule(name, project.module, checkout);
  const owners = new Map<FactKind, (fact: Fact) => boolean>();
  const facts: Fact[] = [];
  for (const { kind, read, owns } of project.readers) {
    const found = read(checkout);
    if (found.length === 0) {
      throw new CheckoutError(
        `${checkout.place} has nothing of the kind ${kind} (${factKinds[kind]}) where ${name} had it: upstream/projects.ts says where`,
      );
    }
    facts.push(...unique(found));
    owners.set(kind, owns?.() ?? (() => false));
  }
  return { facts, owns: (fact) => owners.get(fact.kind)?.(fact) ?? false };
}

/** Each name once, with the first file that has it. */
function unique(facts: readonly Fact[]): readonly Fact[] {
  const names = new Set<string>();
  return facts.filter(({ name }) => names.size < names.add(name).size);
}

function checkModule(name: string, module: string, checkout: Checkout): void {
  const [text] = checkout.read(['go.mod']).values();
  const said = /^module (\S+)/m.exec(text ?? '')?.[1];
  if (said === undefined) {
    throw new CheckoutError(`${checkout.place} is no checkout of ${name}: it has no go.mod`);
  }
  if (said.replace(/\/v\d+$/, '') !== module) {
    throw new CheckoutError(`${checkout.place} is no checkout of ${name}: its go.mod says module ${said}`);
  }
}
