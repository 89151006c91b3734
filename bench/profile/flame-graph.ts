/** What V8's profiler says (the Profile of the DevTools protocol), as far as it is read here. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

/** A function at its place in the tree of calls, with everything that was called there. */
export interface Frame {
  readonly name: string
  readonly owner: Owner
  /** By itself, and with all below it. */
  selfMicros: number
  totalMicros: number
  readonly below: Map<string, Frame>
}

/** Whose code it is; `native` is V8's, Node's C++ and the kernel's. */
export type Owner = 'gatehouse' | 'node' | 'package' | 'native'

/** The tree of calls, without the time in which nothing was done. */
export function frames({ nodes, samples, timeDeltas }: CpuProfile): Frame {
  const micros = new Map<number, number>()
  for (const [index, id] of samples.entries())
    micros.set(id, (micros.get(id) ?? 0) + Math.max(0, timeDeltas[index]!))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const all = frame('all', 'native')
  const add = (node: ProfileNode, into: Frame): number => {
    const { functionName, url, lineNumber } = node.callFrame
    if (functionName === '(idle)') return 0
    const isRoot = functionName === '(root)'
    const name = nameOf(functionName, url, lineNumber)
    const own = isRoot ? into : (into.below.get(name) ?? frame(name, ownerOf(functionName, url)))
    if (!isRoot) into.below.set(name, own)
    const self = micros.get(node.id) ?? 0
    let total = self
    for (const child of node.children ?? []) total += add(byId.get(child)!, own)
    own.selfMicros += self
    own.totalMicros += total
    return total
  }
  add(nodes[0]!, all)
  return all
}

/** The functions in which most time was spent, wherever they were called from: name and share. */
export function hottest(all: Frame, count: number): readonly (readonly [name: string, share: number])[] {
  const own = new Map<string, number>()
  const visit = (one: Frame) => {
    own.set(one.name, (own.get(one.name) ?? 0) + one.selfMicros)
    for (const below of one.below.values()) visit(below)
  }
  for (const one of all.below.values()) visit(one)
  const sorted = [...own].toSorted((a, b) => b[1] - a[1]).slice(0, count)
  return sorted.map(([name, self]) => [name, self / all.totalMicros])
}

/** An icicle, from the event loop downwards, for any browser: the pointer over a box says what it is. */
export function flameGraph(all: Frame, title: string): string {
  const boxes: string[] = []
  let depth = 0
  const draw = (one: Frame, left: number, level: number) => {
    const width = (one.totalMicros / all.totalMicros) * WIDTH
    if (width < NARROWEST) return
    depth = Math.max(depth, level)
    boxes.push(box(one, left, level, width, one.totalMicros / all.totalMicros))
    let at = left
    for (const below of [...one.below.values()].toSorted((a, b) => b.totalMicros - a.totalMicros)) {
      draw(below, at, level + 1)
      at += (below.totalMicros / all.totalMicros) * WIDTH
    }
  }
  draw(all, 0, 0)
  const height = TOP + (depth + 1) * ROW
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" font-family="monospace" font-size="11">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="4" y="15" font-size="13">${escaped(title)}</text>
${boxes.join('\n')}
</svg>
`
}

function box({ name, owner }: Frame, left: number, level: number, width: number, share: number): string {
  const y = TOP + level * ROW
  const letters = Math.floor((width - 4) / LETTER)
  const text =
    letters < 3 ? '' : `<text x="${left + 2}" y="${y + 12}">${escaped(name.slice(0, letters))}</text>`
  const rect = `<rect x="${left.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${COLOURS[owner]}"/>`
  return `<g><title>${escaped(name)}: ${(share * 100).toFixed(1)} %</title>${rect}${text}</g>`
}

function frame(name: string, owner: Owner): Frame {
  return { name, owner, selfMicros: 0, totalMicros: 0, below: new Map() }
}

function nameOf(functionName: string, url: string, line: number): string {
  const file = url.replace(/^.*\/(?:dist|node_modules)\//, '').replace(/^node:/, 'node:')
  return `${functionName || '(anonymous)'}${file === '' ? '' : ` ${file}:${line + 1}`}`
}

function ownerOf(functionName: string, url: string): Owner {
  if (url.startsWith('node:')) return 'node'
  if (url.includes('/node_modules/')) return 'package'
  return url === '' || functionName.startsWith('(') ? 'native' : 'gatehouse'
}

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`)
}

const WIDTH = 1400
const TOP = 24
const ROW = 16
const LETTER = 6.7
const NARROWEST = 0.5
const COLOURS: Readonly<Record<Owner, string>> = {
  gatehouse: '#f2a65a',
  node: '#8fb8de',
  package: '#b4a0d6',
  native: '#cfcfcf',
}
