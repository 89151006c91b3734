import { parseArgs } from 'node:util'

/** Of a run; `allKinds` are those of disturbances that there are. */
export function chaosOptions<Kind extends string>(allKinds: readonly Kind[]) {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seconds: { type: 'string' },
      connections: { type: 'string', default: '40' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      workers: { type: 'string', default: '2' },
      /** Kinds of disturbance, and no others: `disk-full,clock`. */
      only: { type: 'string' },
      /** Keeps the folder with the files, the log and every problem, as it is kept after a problem. */
      keep: { type: 'boolean', default: false },
    },
  })
  return {
    seconds: Number(values.seconds ?? Number(values.minutes) * 60),
    connections: Number(values.connections),
    seed: Number(values.seed),
    workers: Number(values.workers),
    keep: values.keep,
    only: values.only === undefined ? allKinds : kindsIn(values.only, allKinds),
  }
}

function kindsIn<Kind extends string>(text: string, allKinds: readonly Kind[]): readonly Kind[] {
  return text.split(',').map((name) => {
    const kind = allKinds.find((each) => each === name)
    if (kind === undefined) throw new Error(`there is no ${name}; there are ${allKinds.join(', ')}`)
    return kind
  })
}
