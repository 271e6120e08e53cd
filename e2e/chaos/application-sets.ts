import type { ArgoObject } from '../pair/index.ts';
import type { Random } from '../random/index.ts';
import type { Ledger, WantedApplication } from './ledger.ts';

/** The one ApplicationSet of each managed agent, in the hub's namespace of its name. */
export const setName = 'set';

/** Its Applications at most. */
const mostElements = 4;

/** What a user wants of an ApplicationSet. */
interface SetContent {
  /** Each is in the name of an Application; none is used again. */
  readonly elements: readonly number[];
  readonly revision: number;
}

/** The first ApplicationSet of an agent. */
export function newSet(agent: string): Pick<ArgoObject, 'metadata' | 'spec'> {
  return { metadata: { name: setName, namespace: agent }, spec: specOf(agent, { elements: [1, 2], revision: 1 }) };
}

/** One edit of a user: an element more or less, or another revision for all. `next` is a number that nobody used before. */
export function changedSet(set: WantedApplication, random: Random, next: number) {
  const { elements, revision } = contentOf(set);
  const edit = random.pick([
    'revision',
    ...(elements.length < mostElements ? ['more'] : []),
    ...(elements.length > 1 ? ['less'] : []),
  ]);
  const dropped = edit === 'less' ? random.pick(elements) : undefined;
  const content = {
    elements: edit === 'more' ? [...elements, next] : elements.filter((one) => one !== dropped),
    revision: edit === 'revision' ? next : revision,
  };
  return {
    spec: specOf(set.agent, content),
    /** The name of the Application that goes. */
    dropped: dropped === undefined ? undefined : `${setName}-${dropped}`,
  };
}

/** Whether an Application has its name from an ApplicationSet. */
export function isGenerated(name: string): boolean {
  return name.startsWith(`${setName}-`);
}

/** What ApplicationSets generate. Nobody knows the UIDs beforehand. */
export function generatedBy(sets: Ledger): WantedApplication[] {
  return sets.wanted.flatMap((set) => {
    const { elements, revision } = contentOf(set);
    return elements.map((element) => ({
      agent: set.agent,
      name: `${setName}-${element}`,
      uid: '',
      spec: templateSpec(set.agent, String(element), revision),
    }));
  });
}

function specOf(agent: string, { elements, revision }: SetContent): ArgoObject['spec'] {
  return {
    generators: [{ list: { elements: elements.map((element) => ({ element: String(element) })) } }],
    template: {
      metadata: { name: `${setName}-{{element}}` },
      spec: templateSpec(agent, '{{element}}', revision),
    },
  };
}

function templateSpec(agent: string, element: string, revision: number) {
  const source = {
    repoURL: 'https://git.example.com/repo.git',
    path: `app-${element}`,
    targetRevision: `v${revision}`,
  };
  return { project: 'default', source, destination: { name: agent, namespace: 'default' } };
}

function contentOf({ spec }: WantedApplication): SetContent {
  const { generators, template } = spec as {
    generators: { list: { elements: { element: string }[] } }[];
    template: { spec: { source: { targetRevision: string } } };
  };
  return {
    elements: generators.flatMap(({ list }) => list.elements.map(({ element }) => Number(element))),
    revision: Number(template.spec.source.targetRevision.slice(1)),
  };
}
