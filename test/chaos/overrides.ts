/** The same object with some members replaced; its private fields stay its own. */
export function withOverrides<T extends object>(target: T, overrides: Partial<T>): T {
  return new Proxy(target, {
    get(of, name) {
      if (Object.hasOwn(overrides, name)) return overrides[name as keyof T];
      const value: unknown = Reflect.get(of, name, of);
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}
