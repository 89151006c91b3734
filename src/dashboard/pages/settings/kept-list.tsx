import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type Column, LongTable, type PartOfRows } from '../../parts/long-table.tsx'

interface Props<Row> {
  readonly title: string
  readonly about: ComponentChildren
  readonly columns: (again: () => void) => readonly Column<Row>[]
  keyOf(row: Row): string
  load(page: number, signal: AbortSignal): Promise<PartOfRows<Row>>
  readonly empty: ComponentChildren
  /** What its button says; the form behind it. */
  readonly make?: {
    readonly button: string
    form(done: () => void, cancel: () => void): ComponentChildren
  }
  /** What was made last, where it is shown once. */
  readonly news?: ComponentChildren
}

/** A list of what an administrator makes and takes away. */
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
