import { dirname, resolve } from 'node:path'
import { type App, isSlug, readApps, SLUG_EXPECTED } from '../../apps/app.ts'
import { ConfigFault, placed, readSource } from '../../config/source.ts'
import { parsePolicy } from '../../policy/policy.ts'
import { textIn, parsePolicyText } from '../../runtime/policy-source.ts'
import { DocumentFault, type DocumentProblem, Place } from '../../shared/problem.ts'

/** The apps of a file, as for `gatehouse apps apply`. */
export interface AppFile {
  readonly apps: readonly App[]
  /** The documents by the id of the app. Apps that are not in the list: `default`, and apps of the settings. */
  readonly policies: ReadonlyMap<string, unknown>
}

/** Throws a Fault with every problem of the file, or of a policy file that it names. */
export async function readAppFile(file: string): Promise<AppFile> {
  const source = readSource(await textIn(file), file)
  const { apps, policies, files } = placed(source, () => {
    const problems: DocumentProblem[] = []
    const read = readDocument(Place.of(source.value, problems), problems)
    if (problems.length > 0) throw new DocumentFault('APPS_INVALID', problems)
    return read
  })
  for (const [id, { name, pointer }] of files) {
    const path = resolve(dirname(file), name)
    const text = await textIn(path).catch((error: Error) => {
      throw new ConfigFault([{ where: source.place(pointer), what: error.message }])
    })
    policies.set(id, plain(parsePolicyText(text, path, { of: 'app' }).document))
  }
  return { apps, policies }
}

interface ReadDocument {
  readonly apps: readonly App[]
  readonly policies: Map<string, unknown>
  /** Names of policy files, by the id of the app. */
  readonly files: ReadonlyMap<string, { readonly name: string; readonly pointer: string }>
}

function readDocument(place: Place, problems: DocumentProblem[]): ReadDocument {
  const members = place.members(['apps', 'policies'])
  const list = members.get('apps')
  if (list === undefined && place.isMapping) place.refuse('has no list apps')
  const apps = list === undefined ? [] : readApps(list, POLICY_MEMBERS)
  const policies = new Map<string, unknown>()
  const files = new Map<string, { readonly name: string; readonly pointer: string }>()
  for (const [index, { id }] of apps.entries()) {
    const item = list!.items()[index]!
    const own = item.isMapping ? item.inside(`app "${id}"`).entries() : new Map<string, Place>()
    const [policy, name] = [own.get('policy'), own.get('policy_file')]
    if (policy !== undefined && name !== undefined) name.refuse('goes without policy; remove one of them')
    else if (policy !== undefined) policies.set(id, readPolicy(policy, problems))
    else if (name !== undefined) {
      const file = name.text('the name of a policy file')
      if (file !== null) files.set(id, { name: file, pointer: name.problem('').pointer })
    }
  }
  const listed = new Set(apps.map(({ id }) => id))
  for (const [id, policy] of members.get('policies')?.entries() ?? []) {
    if (!isSlug(id)) policy.refuse(`is not the id of an app: ${SLUG_EXPECTED}`)
    else if (listed.has(id)) policy.refuse('is in the list apps: move its policy there')
    else policies.set(id, readPolicy(policy, problems))
  }
  return { apps, policies, files }
}

function readPolicy(place: Place, problems: DocumentProblem[]): unknown {
  try {
    if (place.value === null) place.refuse('is empty; a policy without rules is {rules: []}')
    parsePolicy(place.value, { of: 'app' })
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error
    const { pointer, within: app } = place.problem('')
    for (const each of error.problems) {
      const within = [app, each.within].filter((part) => part !== null).join(': ')
      problems.push({
        pointer: pointer + each.pointer,
        within: within === '' ? null : within,
        what: each.what,
      })
    }
  }
  return plain(place.value)
}

/** As JSON gives it, to compare with answers. */
function plain(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document))
}

const POLICY_MEMBERS = ['policy', 'policy_file']
