import type { CommandEntry } from '../terminal/command.ts'

/** Every command. Each file is loaded only when its command runs, so that the program starts fast. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'Run the gateway: proxy workers and the management plane',
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'demo',
    summary: 'Run a demo: an app, the gateway in front of it, clients, and the dashboard',
    load: async () => (await import('./demo/demo.ts')).demo,
  },
  {
    name: 'proxy',
    summary: 'Run the data plane alone, as a sidecar or behind another management plane',
    load: async () => (await import('./proxy.ts')).proxy,
  },
  {
    name: 'manage',
    summary: 'Run the management plane alone, for proxies elsewhere',
    load: async () => (await import('./manage.ts')).manage,
  },
  {
    name: 'inject',
    summary: 'Run the Kubernetes admission webhook that adds the proxy to Pods',
    load: async () => (await import('./inject.ts')).inject,
  },
  {
    name: 'evaluate',
    summary: 'Measure the verdicts on recorded connections of known clients',
    load: async () => (await import('./evaluate.ts')).evaluate,
  },
  {
    name: 'check',
    summary: 'Check a configuration and show what is in force',
    load: async () => (await import('./check/check.ts')).check,
  },
  {
    name: 'publish',
    summary: 'Print the policy in the forms that crawlers read: robots.txt, Content-Usage, RSL',
    load: async () => (await import('./publish/publish.ts')).publish,
  },
  {
    name: 'doctor',
    summary: 'Check everything that a gateway needs, and say what to do',
    load: async () => (await import('./doctor/doctor.ts')).doctor,
  },
  {
    name: 'top',
    summary: 'Watch which agents send requests to a running Gatehouse',
    load: async () => (await import('./top.ts')).top,
  },
  {
    name: 'analyze',
    summary: 'Fingerprint the connections in packet captures',
    load: async () => (await import('./analyze.ts')).analyze,
  },
  {
    name: 'fingerprint',
    summary: 'Compute fingerprints of hellos, certificates and requests given as JSON lines',
    load: async () => (await import('./fingerprint.ts')).fingerprint,
  },
  {
    name: 'signatures',
    summary: 'Check, show, explain and extend the signatures of known software',
    load: async () => (await import('./signatures/signatures.ts')).signatures,
  },
  {
    name: 'snapshot',
    summary: 'Write the policy and the signatures of a fleet to a file, and show such a file',
    load: async () => (await import('./snapshot/snapshot.ts')).snapshot,
  },
  {
    name: 'record',
    summary: 'Record the connections of clients, for signatures and labelled data',
    load: async () => (await import('./record/record.ts')).record,
  },
  {
    name: 'apps',
    summary: 'List, create, import, export and apply the apps of a running Gatehouse',
    load: async () => (await import('./apps/apps.ts')).apps,
  },
  {
    name: 'keys',
    summary: 'Create, list and revoke API keys',
    load: async () => (await import('./access/keys.ts')).keys,
  },
  {
    name: 'clients',
    summary: 'Create, list and delete OAuth clients',
    load: async () => (await import('./access/clients.ts')).clients,
  },
  {
    name: 'trust',
    summary: 'Manage which Agent Identities and keys may use the API',
    load: async () => (await import('./access/trust.ts')).trust,
  },
  {
    name: 'users',
    summary: 'Create, list, change and delete users, and set their passwords',
    load: async () => (await import('./access/users.ts')).users,
  },
  {
    name: 'sign',
    summary: 'Act as an agent that signs its requests (Web Bot Auth): keys, directory, requests',
    load: async () => (await import('./sign/sign.ts')).sign,
  },
  {
    name: 'verify',
    summary: 'Verify a signed request (Web Bot Auth), and explain each step',
    load: async () => (await import('./sign/verify.ts')).verify,
  },
  {
    name: 'card',
    summary: 'Fetch the signature agent card of an agent, and show how it is read',
    load: async () => (await import('./sign/card.ts')).card,
  },
  {
    name: 'tools',
    summary: 'Run the tools for agents at a running Gatehouse',
    load: async () => (await import('./tools.ts')).tools,
  },
  {
    name: 'mcp',
    summary: 'Speak MCP on standard input and output, for clients on this machine',
    load: async () => (await import('./mcp.ts')).mcp,
  },
  {
    name: 'migrate',
    summary: 'Bring the tables of the database up to date',
    load: async () => (await import('./migrate.ts')).migrateTables,
  },
  {
    name: 'rekey',
    summary: 'Encrypt the secrets in the database again with the first encryption key',
    load: async () => (await import('./rekey.ts')).rekeySecrets,
  },
  {
    name: 'erase',
    summary: "Erase one person's data in every store",
    load: async () => (await import('./erase.ts')).erasePerson,
  },
  {
    name: 'backup',
    summary: 'Copy the database to a file, while the gateway runs',
    load: async () => (await import('./backup.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'Replace the database by a backup, while the gateway runs or not',
    load: async () => (await import('./backup.ts')).restore,
  },
  {
    name: 'completion',
    summary: 'Print the completion script of a shell',
    load: async () => (await import('./completion.ts')).completion(COMMANDS),
  },
  {
    name: 'help',
    summary: 'Show the help of a command, or a page of the manual',
    load: async () => (await import('./help.ts')).help(COMMANDS),
  },
]
