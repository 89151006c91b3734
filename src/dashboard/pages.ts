import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import type { Scope } from './api/operations.ts'

/** A page, and its own pages below it; each comes in a file of its own, that is loaded when it is first looked at. */
export const PAGES: readonly [PageEntry, ...PageEntry[]] = [
  {
    title: 'Live',
    path: '/dashboard',
    scope: 'read',
    routes: [
      { path: '/dashboard', component: lazy(() => import('./pages/live/live.tsx').then(({ Live }) => Live)) },
    ],
  },
]

export interface PageEntry {
  readonly title: string
  readonly path: string
  /** Without which there is nothing on it. */
  readonly scope: Scope
  readonly routes: readonly { readonly path: string; readonly component: FunctionComponent }[]
}
