import { hashKey, isSameKey, type Seed } from './fingerprint-key.ts'
import { homeOf, LIST_BITS, LIST_MASK, PROBES_MAX } from './index-layout.ts'
import { type Keys, Numbers } from './index-rows.ts'

/** Rows that are equal in some parts. The members of a group run from its start to the next start. */
export interface Groups {
  readonly count: number
  readonly starts: Int32Array
  readonly members: Int32Array
  /** A hash table of the groups, as in an index. A slot holds the number of the group plus one. */
  readonly slots: Int32Array
  readonly probes: number
}

/** `null`: too many keys collide. So it is in the functions below. */
export function group(keys: Keys, rows: Int32Array, parts: number, seed: Seed): Groups | null {
  const slots = new Int32Array(rows.length * 2)
  const firsts = new Numbers()
  const groupOf = new Int32Array(rows.length)
  const sizes = new Numbers()
  const { form, words, starts } = keys
  let probesMost = 0
  for (let i = 0; i < rows.length; i++) {
    const at = starts[rows[i]!]!
    const hash = hashKey(form, parts, words, at, seed)
    let slot = homeOf(hash, slots.length)
    let probes = 1
    for (; slots[slot] !== 0; probes++) {
      const found = slots[slot]!
      if ((found ^ (hash << LIST_BITS)) >>> LIST_BITS === 0) {
        const first = firsts.items[(found & LIST_MASK) - 1]!
        if (isSameKey(form, parts, words, at, starts[first]!)) break
      }
      if (++slot === slots.length) slot = 0
    }
    if (probes > PROBES_MAX) return null
    probesMost = Math.max(probesMost, probes)
    if (slots[slot] === 0) {
      firsts.push(rows[i]!)
      sizes.push(0)
      slots[slot] = (hash << LIST_BITS) | firsts.length
    }
    groupOf[i] = (slots[slot]! & LIST_MASK) - 1
    sizes.items[groupOf[i]!]!++
  }
  return { ...sortByGroup(rows, groupOf, sizes), slots, probes: probesMost }
}

function sortByGroup(
  rows: Int32Array,
  groupOf: Int32Array,
  sizes: Numbers,
): Pick<Groups, 'count' | 'starts' | 'members'> {
  const count = sizes.length
  const starts = new Int32Array(count + 1)
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i]! + sizes.items[i]!
  const next = starts.slice()
  const members = new Int32Array(rows.length)
  for (const [i, row] of rows.entries()) members[next[groupOf[i]!]!++] = row
  return { count, starts, members }
}

export interface Table {
  readonly slots: Int32Array
  readonly probes: number
}

/** The table of the groups, at most half full. */
export function tableOf(
  keys: Keys,
  parts: number,
  groups: Groups,
  listOf: Int32Array,
  seed: Seed,
): Table | null {
  const roomy = groups.slots.length > groups.count * 2
  const found = roomy ? slotsOf(keys, parts, groups, seed) : groups
  if (found === null) return null
  const slots = found.slots.map((slot) =>
    slot === 0 ? 0 : (slot & ~LIST_MASK) | (listOf[(slot & LIST_MASK) - 1]! + 1),
  )
  return { slots, probes: found.probes }
}

/** The same groups in as few slots as a table needs. */
function slotsOf(keys: Keys, parts: number, groups: Groups, seed: Seed): Table | null {
  const slots = new Int32Array(groups.count * 2)
  let probesMost = 0
  for (let i = 0; i < groups.count; i++) {
    const at = keys.starts[groups.members[groups.starts[i]!]!]!
    const hash = hashKey(keys.form, parts, keys.words, at, seed)
    let slot = homeOf(hash, slots.length)
    let probes = 1
    for (; slots[slot] !== 0; probes++) if (++slot === slots.length) slot = 0
    if (probes > PROBES_MAX) return null
    probesMost = Math.max(probesMost, probes)
    slots[slot] = (hash << LIST_BITS) | (i + 1)
  }
  return { slots, probes: probesMost }
}
