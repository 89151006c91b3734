import { ACTION_FORMS, type RuleField } from '../rules/fields.ts'
import { ITEM } from './place.ts'
import {
  ACTIONS,
  CARD_MEMBERS,
  CONDITIONS,
  POLICY_MEMBERS,
  RULE_MEMBERS,
  UNKNOWN_SIGNER,
  VALUES,
  type Words,
} from './words.ts'

/** What may stand at a place of a policy. */
export interface Shape {
  /** Words to choose from. */
  readonly words?: Words
  /** The keys of a mapping. */
  readonly members?: ReadonlyMap<string, ShapeMember>
  /** Of a list that has to be one. Other lists take what their single value takes. */
  readonly items?: Shape
  /** The ids of agents and software are words, too. */
  readonly hasIds?: boolean
}

interface ShapeMember {
  readonly about: string
  readonly shape: Shape
}

/** `null`: this path is not of a policy. `isOfApp`: an app has no rules before or after its own. */
export function shapeAt(path: readonly string[], isOfApp: boolean): Shape | null {
  let shape: Shape | undefined = isOfApp ? OF_APP : OF_ORGANISATION
  for (const step of path) shape = step === ITEM ? (shape?.items ?? shape) : shape?.members?.get(step)?.shape
  return shape ?? null
}

function mapping(
  words: Words,
  shapes: Readonly<Record<string, Shape>> = {},
): ReadonlyMap<string, ShapeMember> {
  return new Map(words.map(([name, about]) => [name, { about, shape: shapes[name] ?? ANY }]))
}

/** The settings of an action, as its form has them. */
function settings(fields: readonly RuleField[]): Shape {
  const members = new Map<string, ShapeMember>()
  for (const { name, label, hint = '', kind, choices } of fields) {
    const about = hint === '' ? label : `${label}. ${hint}`
    const words =
      choices?.map((word): readonly [string, string] => [word, '']) ?? (kind === 'check' ? FLAG : [])
    const [outer = '', inner] = name.split('.')
    if (inner === undefined) members.set(outer, { about, shape: { words } })
    else {
      const others = members.get(outer)?.shape.members ?? []
      members.set(outer, {
        about: '',
        shape: { members: new Map([...others, [inner, { about, shape: { words } }]]) },
      })
    }
  }
  return { members }
}

/** An action of these names. */
function action(names: readonly string[], shapes: Readonly<Record<string, Shape>>): Shape {
  const known = ACTIONS.filter(([name]) => names.includes(name))
  return {
    words: known.filter(([name]) => ACTION_FORMS[name]?.first === null),
    members: mapping(known, shapes),
  }
}

const ANY: Shape = {}
const FLAG: Words = [
  ['true', ''],
  ['false', ''],
]
const NAMES = ACTIONS.map(([name]) => name)
const SETTINGS = Object.fromEntries(NAMES.map((name) => [name, settings(ACTION_FORMS[name]?.fields ?? [])]))
const THEN = action(['block', 'tarpit'], SETTINGS)
const RATE_LIMIT = new Map(SETTINGS['rate_limit']?.members)
const ACTION = action(NAMES, {
  ...SETTINGS,
  rate_limit: {
    members: RATE_LIMIT.set('then', { about: RATE_LIMIT.get('then')?.about ?? '', shape: THEN }),
  },
})

const CARD = mapping(CARD_MEMBERS, {
  ...{ purpose: { words: VALUES['purpose']! }, trigger: { words: VALUES['trigger']! } },
  robots: { words: FLAG },
})
const VALUE_SHAPES = Object.fromEntries(Object.entries(VALUES).map(([name, words]) => [name, { words }]))
const SIMPLE: Readonly<Record<string, Shape>> = {
  ...VALUE_SHAPES,
  ...{ agent: { hasIds: true }, software: { hasIds: true } },
  card: { words: VALUES['card']!, members: CARD },
}
const WHEN: Shape = {
  members: mapping(CONDITIONS, {
    ...SIMPLE,
    not: {
      members: mapping(
        CONDITIONS.filter(([name]) => name !== 'not'),
        SIMPLE,
      ),
    },
  }),
}
const RULES: Shape = {
  items: { members: mapping(RULE_MEMBERS, { when: WHEN, action: ACTION, dry_run: { words: FLAG } }) },
}
const OF_ORGANISATION: Shape = {
  members: mapping(POLICY_MEMBERS, {
    ...{ rules: RULES, first: RULES, last: RULES, otherwise: ACTION },
    unknown_signer: { words: [['pass', '']], members: mapping(UNKNOWN_SIGNER) },
  }),
}
const OF_APP: Shape = {
  members: new Map([...OF_ORGANISATION.members!].filter(([name]) => name !== 'first' && name !== 'last')),
}
