import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type LongColumn, LongTable, type PartOfRows } from '../../parts/long-table.tsx'

interface Props<Row> {
  readonly title: string
  readonly about: ComponentChildren
  readonly columns: (again: () => void) => readonly LongColumn<Row>[]
  keyOf(row: Row): string
  load(page: number, signal: AbortSignal): Promise<PartOfRows<Row>>
  readonly empty: ComponentChildren
  /** The button text and its form. */
  readonly make?: {
    readonly button: string
    form(done: () => void, cancel: () => void): ComponentChildren
  }
  /** The last created item, if it has to be shown once. */
  readonly news?: ComponentChildren
}

/** A list of items that administrators create and delete. */
export function KeptList<Row>({ title, about, columns, keyOf, load, empty, make, news }: Props<Row>) {
  const [turn, setTurn] = useState(0)
  const [isMaking, setMaking] = useState(false)
  const again = () => setTurn((before) => before + 1)
  const made = () => {
    setMaking(false)
    again()
  }
  return (
    <section aria-labelledby="list">
      <div class="page-head">
        <div>
          <h2 id="list">{title}</h2>
          <p class="about">{about}</p>
        </div>
        {make !== undefined && !isMaking && (
          <button type="button" class="main" onClick={() => setMaking(true)}>
            {make.button}
          </button>
        )}
      </div>
      {news}
      {make !== undefined && isMaking && <div class="card">{make.form(made, () => setMaking(false))}</div>}
      <LongTable
        label={title}
        columns={columns(again)}
        listKey={String(turn)}
        keyOf={keyOf}
        load={load}
        empty={empty}
      />
    </section>
  )
}
