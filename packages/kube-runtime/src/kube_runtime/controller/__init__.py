"""Work queue, controllers, Events and the manager that runs them."""
