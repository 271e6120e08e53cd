import { expect, test } from 'vitest';
import { titlesIn } from './titles.ts';

/**
 * The defects of argocd-agent that this project does not have, by their numbers in its behaviour reference (F.2, 1-54), and
 * for each the test that fails on the defective behaviour. Kept here so that a test of a defect is not lost unnoticed: those
 * named must exist.
 */
interface Defect {
  /** What goes wrong in argocd-agent, in a few words. */
  readonly what: string;
  /** File and title of each test; a title of a table's row is the row's name. */
  readonly tests?: readonly (readonly [file: string, title: string])[];
  /** The feature is not built yet; its tests come with it. */
  readonly later?: string;
  /** Compatibility asks for the same behaviour. */
  readonly forced?: string;
}

const hostile = 'principal/hostile/messages.it.test.ts';
const rogue = 'principal/hostile/autonomous.it.test.ts';
const managed = 'lib/argocd/managed/defects.test.ts';
const deletion = 'lib/argocd/managed/deletion.test.ts';
const autonomous = 'lib/argocd/autonomous/defects.test.ts';
const autonomousOwnership = 'lib/argocd/autonomous/defects-of-ownership.test.ts';
const autonomousRequests = 'lib/argocd/autonomous/defects-of-requests.test.ts';
const mirror = 'lib/argocd/autonomous/mirror.test.ts';
const projects = 'lib/argocd/replicas/app-projects.test.ts';
const projectMirrors = 'lib/argocd/replicas/project-mirrors.test.ts';
const repositories = 'lib/argocd/replicas/repositories.test.ts';
const gpgKeys = 'lib/argocd/replicas/gpg-keys.test.ts';
const general = 'lib/argocd/defects.test.ts';
const rules = 'lib/argocd/rules.test.ts';

const defects: Readonly<Record<number, Defect>> = {
  1: {
    what: 'with destination-based mapping any agent overwrites any Application’s status',
    tests: [
      [
        managed,
        'F.2 1: an agent cannot write the status of another agent, nor end its deletion, nor mark it as broken',
      ],
      [hostile, 'what an agent says about what is not its own changes nothing, and it learns nothing'],
    ],
  },
  2: {
    what: 'a new cluster Secret sends Applications past the allowed namespaces',
    tests: [
      [
        managed,
        'F.2 2: an agent gets nothing that the namespaces and labels of the hub keep from it, whatever it asks',
      ],
    ],
  },
  3: {
    what: 'a late deletion removes the re-created Application',
    tests: [
      [deletion, 'F.2 3: a deletion of an earlier incarnation, delivered late, does not touch the new one'],
      ['lib/argocd/managed/cluster/copy-plan.test.ts', 'a deletion is of one incarnation'],
    ],
  },
  4: {
    what: 'a re-created autonomous Application keeps the old identity on the hub',
    tests: [[autonomous, 'takes over the name though the deletion of the one before comes later']],
  },
  5: {
    what: 'an update of a missing mirror is swallowed',
    tests: [[autonomous, 'that is missing is made by an update too']],
  },
  6: {
    what: 'a mirror with finalizers that a user deletes stays away',
    tests: [
      [autonomous, 'is made again after a user deleted it, whatever its finalizers'],
      [
        projectMirrors,
        'is put back when somebody on the hub changes it, takes its marks or deletes it, also with finalizers',
      ],
    ],
  },
  7: {
    what: 'mirrors are unprotected after a restart of the principal',
    tests: [
      [autonomous, 'is protected after a restart, before its agent is there'],
      [projectMirrors, 'is protected from the start when its agent is expected'],
    ],
  },
  8: {
    what: 'the namespace argocd counts as an autonomous agent’s',
    tests: [
      [
        general,
        'F.2 8: no name makes a namespace an autonomous agent’s: what came to argocd from another hub is given to its agent',
      ],
      [projects, 'a hub project that was copied from another hub is no mirror'],
    ],
  },
  9: { what: 'replicas write what agents said untransformed', later: 'replication between principals' },
  10: {
    what: 'deletions during a gap of a watch are missed',
    tests: [
      ['lib/kube/informer.it.test.ts', 'deletes, changes and re-creations during a gap are reported after it'],
      ['lib/kube/informer.test.ts', '410 %s leads to a list that reports the difference'],
    ],
  },
  11: {
    what: 'under upsert the old identity of repositories and GPG keys comes back, and with it old data',
    tests: [
      [repositories, 'one that was deleted and made again meanwhile is changed in place'],
      [gpgKeys, 'keys that were changed and removed on the hub while nobody was connected'],
    ],
  },
  12: {
    what: 'repositories deleted while the principal was away stay on agents',
    tests: [[repositories, 'what the hub took away while nobody was connected is gone after any restart']],
  },
  13: {
    what: 'a resync sends an autonomous agent’s project as if it were a managed one',
    tests: [
      [projectMirrors, 'is brought in step after any absence, at the cost of the difference'],
      [projectMirrors, 'is mirrored under a prefixed name for its own namespace and cluster, changed and removed'],
    ],
  },
  14: {
    what: 'checksums never match for transformed kinds',
    tests: [
      [projects, 'after a restart of both sides nothing is sent or written that is in step, and what must go goes'],
      [projectMirrors, 'what a Go agent would compare with its own project is the checksum of that, not of the mirror'],
      [mirror, 'the digest of %s is that of its mirror'],
    ],
  },
  15: {
    what: 'the resync of an autonomous agent’s project meets the hub’s project of that name',
    tests: [[general, 'F.2 15: a project of the hub that is called like an agent’s own stands in the way of nothing']],
  },
  16: {
    what: 'a project that exists is not updated by a create',
    tests: [[projectMirrors, 'that is there already is updated, also one that argocd-agent’s principal made']],
  },
  17: {
    what: 'delete and create at once leaves nothing when finalizers take their time',
    tests: [[deletion, 'F.2 17: the old copy takes its time']],
  },
  18: {
    what: 'a failed creation leaves a mark that makes later updates vanish',
    tests: [[managed, 'F.2 18: a copy whose making failed is made later, and takes every update']],
  },
  19: {
    what: 'resource versions of two clusters are compared',
    tests: [
      [managed, 'F.2 19: versions of two clusters are not compared: an update counts whatever its number'],
      [autonomousRequests, 'equal resource versions on both clusters hide nothing'],
    ],
  },
  20: {
    what: 'a refresh of an Application without annotations is refused for ever',
    tests: [
      [
        autonomousRequests,
        '%s reaches an Application without annotations, and is gone from the mirror when it is done',
      ],
    ],
  },
  21: {
    what: 'what can never be written is sent for ever',
    tests: [
      [
        managed,
        'F.2 21: what an API server will never take is told once, tried ever more rarely, and holds up nothing',
      ],
      [
        autonomousOwnership,
        'what the API server rejects is tried again ever more rarely, and the next word of the agent at once',
      ],
    ],
  },
  22: {
    what: 'what needs a namespace or a cluster that is missing is lost',
    tests: [
      [
        autonomousOwnership,
        'without a namespace the event is kept, the trouble is said, and it is done when the namespace is there',
      ],
      [autonomousOwnership, 'without a cluster the event is kept; a cluster of another name changes the mirrors'],
    ],
  },
  23: {
    what: 'status of before the agent’s start, or of adoption, is not told',
    tests: [[managed, 'F.2 23: status is told when an agent starts, and when it adopts']],
  },
  24: {
    what: 'an Application is deleted though bringing it in step failed',
    tests: [
      [
        managed,
        'F.2 24: an Application that is being deleted on the hub is brought in step first, and deleted only then',
      ],
    ],
  },
  25: {
    what: 'what is remembered of deleted objects outlives them',
    tests: [
      [
        managed,
        'F.2 25: nothing is remembered of an Application that is gone: its successor in name is not taken for it',
      ],
      [deletion, 'nothing is remembered of an agent that says it has what it should not have, once that is deleted'],
    ],
  },
  26: {
    what: 'an error replaces the whole status, or that of another Application',
    tests: [
      [
        managed,
        'F.2 26: an error of an agent shows as health and condition; the rest stays, also of a remapped namespace',
      ],
    ],
  },
  27: {
    what: 'a repository that changes projects is lost, or deleted everywhere by an outage',
    tests: [
      [repositories, 'a repository follows its project: named later, made later, turned away, gone, and back'],
      [repositories, 'a repository that changes from one project of the agent to another stays all the time'],
      [repositories, 'an API server that does not answer takes nothing away'],
    ],
  },
  28: {
    what: 'more than 1,000 pending events lose the oldest',
    tests: [[managed, 'F.2 28: any number of Applications made while an agent is away reaches it']],
  },
  29: {
    what: 'a second cluster Secret, or a changed label, leaves the mapping wrong; "Successful" outlives the principal',
    tests: [
      ['principal/clusters/mapped-agents.test.ts', 'an agent stays mapped until its last Secret is gone'],
      ['principal/clusters/mapped-agents.test.ts', 'a changed label moves the mapping'],
      [
        'principal/clusters/cluster-info.test.ts',
        'after a restart the counts are kept, and an agent that does not come back counts as gone',
      ],
    ],
  },
  30: { what: 'a promoted replica lacks what only the primary had', later: 'replication between principals' },
  31: {
    what: 'agent a’s project b-c and agent a-b’s project c are one on the hub',
    forced:
      'a mirror is called <agent>-<project>, as users and Go agents know it; the name is the first one’s, the other agent is refused and told',
    tests: [
      [
        projectMirrors,
        'two agents whose names come together: the first has it, the second is refused and changes nothing',
      ],
      [mirror, 'every project is prefixed; none means default'],
      [rogue, 'its projects and those of the hub, or of a neighbour, are not confused'],
    ],
  },
  32: {
    what: 'annotations of the managed cluster are removed by every update',
    tests: [[managed, 'F.2 32: what the managed cluster notes on its copy outlives the updates of the hub']],
  },
  33: {
    what: 'hydrate and timestamps of refreshes stay on the hub and are sent again',
    tests: [[managed, 'F.2 33: the request %o reaches Argo CD once, and is gone on the hub when it is done']],
  },
  34: {
    what: 'a resync repeats an operation',
    tests: [[managed, 'F.2 34: a state told again carries no operation; the operation is a message of its own, once']],
  },
  35: {
    what: 'kubectl’s last-applied annotation comes back with updates',
    tests: [
      [managed, "F.2 35: kubectl's note of the hub's object is not on the copy, neither at first nor after an update"],
    ],
  },
  36: {
    what: 'objects of the cache are written to',
    tests: [[managed, 'F.2 36: objects of the caches are never written to']],
  },
  37: {
    what: 'reconnects leak; discarded events are never done with',
    tests: [
      [general, 'F.2 37: an agent that comes and goes leaves nothing behind'],
      [
        'lib/bridge/peer.test.ts',
        'what cannot be read or is not for us is acknowledged, so that it does not come again',
      ],
    ],
  },
  38: {
    what: 'static logs and resource requests hold up all other events',
    tests: [
      ['agent/live/requests.test.ts', 'a request runs once however often it comes, and beside all others'],
      ['e2e/live/resources.it.test.ts', 'a large list comes whole, and holds nothing up'],
    ],
  },
  39: {
    what: 'a POST through the resource proxy is not checked for tracking',
    tests: [['e2e/live/resources.it.test.ts', 'an object is created where an Application deploys, and deleted']],
  },
  40: {
    what: 'a lone slash as a pattern ends the program',
    tests: [
      ['lib/argocd/glob.test.ts', '%j and %j: %s'],
      [rules, '%j matches %s: %s'],
      ['lib/argocd/glob.test.ts', 'nobody stops the program with a pattern (%#)'],
    ],
  },
  41: {
    what: 'destinations of a project are duplicated on the agent, and denials are lost',
    tests: [
      [rules, 'an agent gets its own destinations once, turned to itself, and no roles'],
      [rules, 'a project goes to the agents that its destinations and source namespaces mean'],
    ],
  },
  42: {
    what: 'an expected deletion that did not come lets a later one pass',
    tests: [[managed, 'F.2 42: a deletion that found nothing does not let a later one pass']],
  },
  43: {
    what: 'the adoption policy is not validated; projects ignore it',
    forced:
      'projects are taken over whatever the policy, as users of argocd-agent expect; a word that is no policy is refused',
    tests: [
      ['agent/options.test.ts', '--adoption-policy=sometimes'],
      [repositories, 'a repository that is there is taken over when it may be, as soon as it may'],
    ],
  },
  44: {
    what: 'an agent changes its mode by saying so, and owns what the hub owned',
    tests: [
      [rogue, 'an agent cannot change its mode by itself'],
      [
        'principal/sessions/pinned-mode.test.ts',
        'another mode is refused with what must be done, and the agent is told',
      ],
    ],
  },
  45: {
    what: 'a message that cannot be read ends the stream, and comes again at once',
    tests: [
      [
        'lib/bridge/peer.test.ts',
        'what cannot be read or is not for us is acknowledged, so that it does not come again',
      ],
      ['lib/wire/conformance.test.ts', 'a message that is no event is left out, the stream goes on'],
      [hostile, 'payloads that are no honest JSON harm nobody'],
    ],
  },
  46: {
    what: 'agents that connect are served one after the other',
    tests: [
      [
        general,
        'F.2 46: agents that connect at once are served side by side, and one that does not answer holds up nobody',
      ],
    ],
  },
  47: {
    what: 'a conflict loses an update of GPG keys or a project',
    tests: [
      [gpgKeys, 'local changes are put back, conflicts are no end'],
      [projects, 'a write that fails is repeated'],
    ],
  },
  48: {
    what: 'a queue that ends while it is read crashes the principal',
    tests: [['lib/sync/inbox.test.ts', 'nothing is started or acknowledged after the end']],
  },
  49: {
    what: 'an autonomous agent named like its installation namespace is looked up in the principal’s',
    tests: [
      [
        general,
        'F.2 49: what an autonomous agent speaks of is in its namespace on the hub, also when its installation is called like that',
      ],
    ],
  },
  50: {
    what: 'the hub never learns whether a cascade on the old cluster finished',
    tests: [
      [deletion, 'F.2 50: what the old cluster is still removing is told on the Application that went to another one'],
    ],
  },
  51: {
    what: 'of two own writes in quick succession the first looks like somebody else’s',
    tests: [[managed, "F.2 51: own writes that come back late, several at once, pass for nobody else's"]],
  },
  52: {
    what: 'owner references of repositories make the agent’s cluster collect them',
    tests: [[repositories, 'owners and finalizers stay on the hub']],
  },
  53: {
    what: 'projects, repositories and keys are deleted and made again when another principal takes over',
    later:
      'replication between principals; what it needs of the other kinds is there: another UID is no reason to delete',
    tests: [
      [projects, 'a project that was deleted and made again while nobody could hear it is changed in place'],
      [repositories, 'one that was deleted and made again meanwhile is changed in place'],
    ],
  },
  54: {
    what: 'all agents share one CloudEvents source',
    forced: 'Go principals and tools know agents by this source; who sends is told by the token, never by the source',
    tests: [['lib/wire/events/codec.test.ts', 'an acknowledgement by an agent']],
  },
};

test('every defect has a number, and a test, or a reason why not yet', () => {
  expect(Object.keys(defects).map(Number)).toEqual(Array.from({ length: 54 }, (_, index) => index + 1));
  for (const [number, { tests = [], later }] of Object.entries(defects)) {
    expect(tests.length > 0 || later !== undefined, `defect ${number}`).toBe(true);
  }
});

test.each(Object.entries(defects).flatMap(([number, { tests = [] }]) => tests.map((one) => [number, ...one] as const)))(
  'the test of defect %s exists: %s, %s',
  (_, file, title) => {
    expect(titlesIn(file)).toContain(title);
  },
);
