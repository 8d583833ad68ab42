"use strict";

// Light, dark, or the system's theme; remembered if storage is allowed.
(() => {
  const button = document.getElementById("theme");
  const themes = ["auto", "dark", "light"];
  const root = document.documentElement;
  let theme = "auto";
  try {
    theme = localStorage.getItem("uevt-theme") || theme;
  } catch { /* A file: page may have no storage. */ }

  function show() {
    root.dataset.theme = theme;
    button.textContent = `theme: ${theme}`;
  }

  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("uevt-theme", theme);
    } catch { /* Not remembered. */ }
    show();
  });
  show();
})();
