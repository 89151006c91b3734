declare const brand: unique symbol

/** A parsed value: only the code that creates a `Brand<string, 'Ja4'>` can return one. */
export type Brand<Base, Name extends string> = Base & { readonly [brand]: Name }
